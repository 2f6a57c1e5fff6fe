#include "zeus/monitor/inference/testing/attribution_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "zeus/base/file.h"
#include "zeus/base/random.h"
#include "zeus/base/testing/places.h"
#include "zeus/device/sim/inference/engine.h"
#include "zeus/device/sim/simulated_gpu.h"
#include "zeus/monitor/inference/attribution.h"

namespace zeus::testing {
namespace {

constexpr Seconds kLeadTime{5};   // Idle time before the first arrival.
constexpr Seconds kCloseTime{3};  // After the last token.
constexpr double kBytesPerToken = 4.3;
constexpr Seconds kStrangerPhase{30};
constexpr double kStrangerFrom = 60;

TimePoint At(Seconds time) { return TimePoint(time); }

// A request as the simulation ran it.
struct Served {
  EngineIndex engine = 0;
  LoadPoint load{};
  std::vector<Seconds> tokens{};
  Seconds end{};
  Joules prefill{};
  Joules decode{};
};

class Listener final : public sim::EngineListener {
 public:
  explicit Listener(std::vector<Served>& served) : served_(served) {}
  void OnIteration(const sim::IterationReport& iteration) override {
    const double length = (iteration.end - iteration.start).count();
    batch_time += length * iteration.decodes;
    busy_time += length;
    for (const sim::OutputToken& token : iteration.tokens)
      served_[places.at(token.request)].tokens.push_back(iteration.end);
  }
  void OnEnd(const sim::RequestTruth& truth) override {
    Served& served = served_[places.at(truth.id)];
    served.end = truth.end;
    served.prefill = truth.prefill;
    served.decode = truth.decode;
  }
  std::map<sim::RequestId, std::size_t> places;
  double batch_time = 0;
  double busy_time = 0;

 private:
  std::vector<Served>& served_;
};

// Energy that the GPU took until some moment.
struct Sample {
  Seconds time;
  Joules energy;
};

// Makes stretches in which the sensor was not read: their energy is told as a whole.
void StarveSensor(std::vector<Sample>& samples, Seconds longest, Random& random) {
  if (longest <= Seconds(0)) return;
  Seconds from = samples.front().time;
  Seconds until = from;
  std::erase_if(samples, [&](const Sample& sample) {
    if (sample.time > until + longest) {
      // It was read in time for as long as a stretch lasts at most.
      from = sample.time;
      until = from + longest * random.Uniform();
    }
    return sample.time > from && sample.time < until;
  });
}

struct Simulation {
  std::vector<Served> served;
  std::vector<Sample> samples;  // At least at every edge of what the sensor sees.
  double mean_batch = 0;
  Joules stranger{};
};

// Runs the engines on one simulated GPU, in order of time.
class Runner {
 public:
  explicit Runner(const AttributionCase& scenario)
      : scenario_(scenario),
        gpu_model_(*sim::FindGpuModel("H100").value()),
        gpu_(clock_, gpu_model_, {.seed = 7}) {}

  Result<Simulation> Run() {
    ZEUS_RETURN_IF_ERROR(Start());
    Seconds sensor{0};
    std::size_t next = 0;
    Seconds last{0};
    while (true) {
      const bool busy = std::any_of(engines_.begin(), engines_.end(), [](const auto& engine) {
        return engine->running() + engine->waiting() > 0;
      });
      if (next == arrivals_.size() && !busy && sensor > last + kCloseTime) break;
      if (busy || next < arrivals_.size()) last = sensor;
      if (next < arrivals_.size() && simulation_.served[arrivals_[next]].load.arrival <= sensor) {
        ZEUS_RETURN_IF_ERROR(Submit(arrivals_[next++]));
        continue;
      }
      ZEUS_RETURN_IF_ERROR(AdvanceTo(sensor));
      simulation_.samples.push_back({.time = sensor, .energy = gpu_.ExactEnergy()});
      sensor = NextSample();
      DriveStranger(sensor);
    }
    double batch = 0;
    double time = 0;
    for (const auto& listener : listeners_) {
      batch += listener->batch_time;
      time += listener->busy_time;
    }
    simulation_.mean_batch = time > 0 ? batch / time : 0;
    return std::move(simulation_);
  }

 private:
  Status Start() {
    ZEUS_TRY(const sim::LanguageModel* model, sim::FindLanguageModel(scenario_.model));
    const std::size_t count = scenario_.engines.size();
    for (EngineIndex index = 0; index < count; ++index) {
      sim::EngineOptions options;
      if (count > 1) options.kv_tokens = 400'000 / count;
      listeners_.push_back(std::make_unique<Listener>(simulation_.served));
      ZEUS_TRY(auto engine, sim::InferenceEngine::Create(*model, sim::AccessTo({&gpu_}), options,
                                                         *listeners_.back()));
      engines_.push_back(std::move(engine));
      for (LoadPoint point : scenario_.engines[index]) {
        point.arrival += kLeadTime;
        simulation_.served.push_back({.engine = index, .load = point});
      }
    }
    for (std::size_t i = 0; i < simulation_.served.size(); ++i) arrivals_.push_back(i);
    std::stable_sort(arrivals_.begin(), arrivals_.end(), [&](std::size_t a, std::size_t b) {
      return simulation_.served[a].load.arrival < simulation_.served[b].load.arrival;
    });
    return Ok();
  }

  Status AdvanceTo(Seconds time) {
    while (true) {
      Seconds next = time;
      for (const auto& engine : engines_) {
        ZEUS_TRY(const Seconds event, engine->NextEvent());
        next = std::min(next, event);
      }
      clock_.SleepUntil(At(next));
      for (const auto& engine : engines_) ZEUS_RETURN_IF_ERROR(engine->AdvanceTo(next));
      if (next >= time) return Ok();
    }
  }

  Status Submit(std::size_t place) {
    const Served& served = simulation_.served[place];
    ZEUS_RETURN_IF_ERROR(AdvanceTo(served.load.arrival));
    ZEUS_TRY(const sim::RequestId id,
             engines_[served.engine]->Submit(
                 served.load.arrival,
                 {.prompt_tokens = served.load.prompt, .output_tokens = {served.load.output}}));
    listeners_[served.engine]->places[id] = place;
    return Ok();
  }

  // The edges of the periods, and of the part of each that the sensor sees.
  Seconds NextSample() {
    const bool partial = scenario_.sensor_window > Seconds(0);
    if (partial && !within_) {
      within_ = true;
      return scenario_.sensor_period * static_cast<double>(period_ + 1) - scenario_.sensor_window;
    }
    within_ = false;
    return scenario_.sensor_period * static_cast<double>(++period_);
  }

  void DriveStranger(Seconds time) {
    if (scenario_.stranger <= Watts(0)) return;
    const bool on = time.count() > kStrangerFrom &&
                    std::fmod(time.count(), 2 * kStrangerPhase.count()) > kStrangerPhase.count();
    if (on) {
      const Watts extra = scenario_.stranger - gpu_model_.idle_power;
      simulation_.stranger += extra * scenario_.sensor_period;
    }
    if (on && !load_) {
      sim::LoadSpec spec;
      spec.demand = scenario_.stranger;
      if (auto id = gpu_.AttachLoad(spec); id.ok()) load_ = id.value();
    } else if (!on && load_) {
      gpu_.DetachLoad(*load_);
      load_.reset();
    }
  }

  const AttributionCase& scenario_;
  const sim::GpuModel& gpu_model_;
  VirtualClock clock_;
  sim::SimulatedGpu gpu_;
  Simulation simulation_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::vector<std::unique_ptr<sim::InferenceEngine>> engines_;
  std::vector<std::size_t> arrivals_;
  std::uint64_t period_ = 0;
  bool within_ = false;
  std::optional<std::uint32_t> load_;
};

// Something that the proxy or the recorder tells, at a moment.
struct News {
  enum class Kind { kArrival, kToken, kEnd, kEnergy } kind;
  Seconds time;
  std::size_t place = 0;  // The index of the request, or of the sample.
  Seconds delay{0};       // Until it is told.
};

std::vector<News> ToNews(const Simulation& simulation, const AttributionCase& scenario,
                         Random& random) {
  std::vector<News> news;
  const auto delay = [&] {
    return Seconds(-scenario.jitter.count() * std::log(1 - random.Uniform()));
  };
  for (std::size_t place = 0; place < simulation.served.size(); ++place) {
    const Served& served = simulation.served[place];
    news.push_back({News::Kind::kArrival, served.load.arrival, place});
    Seconds last = served.load.arrival;
    for (std::size_t i = 1; i <= served.tokens.size(); ++i) {
      if (i % scenario.tokens_per_event != 0 && i != served.tokens.size()) continue;
      last = std::max(last, served.tokens[i - 1] + delay());
      news.push_back({News::Kind::kToken, last, place});
    }
    news.push_back({News::Kind::kEnd, last + Seconds(1e-5), place});
  }
  for (std::size_t i = 0; i < simulation.samples.size(); ++i)
    news.push_back({News::Kind::kEnergy, simulation.samples[i].time, i, scenario.sensor_lag});
  std::stable_sort(news.begin(), news.end(), [&](const News& a, const News& b) {
    return a.time + a.delay < b.time + b.delay;
  });
  return news;
}

// The answers of the attribution about each request.
struct Answers {
  std::map<InferenceRequestId, RequestEnergy> final_energy;
  std::map<InferenceRequestId, RequestEnergy> provisional;
  double lag = 0;
};

class Proxy {
 public:
  Proxy(const Simulation& simulation, const AttributionCase& scenario, Random& random)
      : simulation_(simulation), scenario_(scenario), random_(random) {
    for (std::size_t i = 0; i < scenario.engines.size(); ++i)
      attribution_.AddEngine({.name = fmt::format("engine {}", i)});
  }

  void Report(const News& news) {
    if (news.kind == News::Kind::kEnergy) {
      Energy(news);
      return;
    }
    const Served& served = simulation_.served[news.place];
    const auto prompt = static_cast<double>(served.load.prompt);
    if (news.kind == News::Kind::kArrival) {
      const double bytes =
          kBytesPerToken * prompt * std::exp(scenario_.bytes_scatter * random_.Normal());
      attribution_.RequestArrived(
          news.place, {.engine = served.engine, .time = At(news.time), .prompt_bytes = bytes});
    } else if (news.kind == News::Kind::kToken) {
      if (scenario_.counts == PromptCounts::kAtFirstToken)
        attribution_.CountsSeen(news.place, {.prompt = prompt});
      attribution_.TokensArrived(news.place, At(news.time));
    } else {
      TokenCounts counts{.output = static_cast<double>(served.tokens.size())};
      if (scenario_.counts != PromptCounts::kNever) counts.prompt = prompt;
      attribution_.RequestEnded(news.place, At(news.time), RequestOutcome::kCompleted, counts);
      if (const auto energy = attribution_.Estimate(news.place))
        answers.provisional[news.place] = *energy;
    }
  }

  Answers answers;
  const InferenceAttribution& attribution() const { return attribution_; }

 private:
  void Energy(const News& news) {
    const Sample& sample = simulation_.samples[news.place];
    const bool partial = scenario_.sensor_window > Seconds(0);
    const double periods = sample.time / scenario_.sensor_period;
    if (partial && std::abs(periods - std::round(periods)) > 1e-6) {
      window_begin_ = sample.energy;
      return;
    }
    Joules energy = sample.energy - last_;
    Joules sigma(0.01);
    if (partial) {
      energy =
          (sample.energy - window_begin_) * (scenario_.sensor_period / scenario_.sensor_window);
      sigma = energy * 0.1;
    }
    last_ = sample.energy;
    attribution_.EnergyMeasured(At(sample.time), energy, sigma);
    for (const SettledRequest& settled : attribution_.TakeSettled()) {
      answers.final_energy[settled.id] = settled.energy;
      answers.lag += (news.time - simulation_.served[settled.id].end).count();
    }
  }

  const Simulation& simulation_;
  const AttributionCase& scenario_;
  Random& random_;
  InferenceAttribution attribution_;
  Joules last_{};
  Joules window_begin_{};
};

double Quantile(std::vector<double>& values, double part) {
  if (values.empty()) return 0;
  const auto place = static_cast<std::size_t>(part * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(place),
                   values.end());
  return values[place];
}

ErrorSummary Summarize(std::vector<double> errors) {
  return {Quantile(errors, 0.5), Quantile(errors, 0.9)};
}

// The energies by the five simpler rules, for each request. Rules that need no simulation of their
// own divide each period of the sensor.
class SimpleRules {
 public:
  explicit SimpleRules(const Simulation& simulation) : simulation_(simulation) {
    for (auto& rule : energy_) rule.resize(simulation.served.size());
    Divide();
    double total = 0;
    double tokens = 0;
    for (const Served& served : simulation.served) {
      total += (served.prefill + served.decode).value();
      tokens += static_cast<double>(served.tokens.size());
    }
    for (std::size_t i = 0; i < simulation.served.size(); ++i)
      energy_[4][i] = total / tokens * static_cast<double>(simulation.served[i].tokens.size());
  }

  std::array<ErrorSummary, AttributionScore::kRules> Errors() const {
    std::array<ErrorSummary, AttributionScore::kRules> result;
    for (std::size_t rule = 0; rule < result.size(); ++rule) {
      std::vector<double> errors;
      for (std::size_t i = 0; i < simulation_.served.size(); ++i) {
        const double truth = (simulation_.served[i].prefill + simulation_.served[i].decode).value();
        if (truth > 0) errors.push_back(std::abs(energy_[rule][i] / truth - 1));
      }
      result[rule] = Summarize(std::move(errors));
    }
    return result;
  }

 private:
  struct Weights {
    double time = 0;
    double output = 0;
    double all = 0;
  };

  void Divide() {
    std::vector<std::size_t> order(simulation_.served.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return simulation_.served[a].load.arrival < simulation_.served[b].load.arrival;
    });
    std::vector<std::size_t> flying;
    std::vector<std::size_t> token(simulation_.served.size());
    std::size_t next = 0;
    std::array<double, 3> carried{};
    for (std::size_t k = 1; k < simulation_.samples.size(); ++k) {
      const Seconds begin = simulation_.samples[k - 1].time;
      const Seconds end = simulation_.samples[k].time;
      const double energy =
          (simulation_.samples[k].energy - simulation_.samples[k - 1].energy).value();
      while (next < order.size() && simulation_.served[order[next]].load.arrival < end)
        flying.push_back(order[next++]);
      if (flying.empty()) continue;
      std::vector<Weights> weights(flying.size());
      Weights sum;
      for (std::size_t i = 0; i < flying.size(); ++i) {
        weights[i] = WeightsIn(flying[i], begin, end, token[flying[i]]);
        sum.time += weights[i].time;
        sum.output += weights[i].output;
        sum.all += weights[i].all;
      }
      for (double& joules : carried) joules += energy;
      for (std::size_t i = 0; i < flying.size(); ++i) {
        const std::size_t place = flying[i];
        energy_[0][place] += energy * weights[i].time / (end - begin).count();
        if (sum.time > 0) energy_[1][place] += carried[0] * weights[i].time / sum.time;
        if (sum.output > 0) energy_[2][place] += carried[1] * weights[i].output / sum.output;
        if (sum.all > 0) energy_[3][place] += carried[2] * weights[i].all / sum.all;
      }
      if (sum.time > 0) carried[0] = 0;
      if (sum.output > 0) carried[1] = 0;
      if (sum.all > 0) carried[2] = 0;
      std::erase_if(flying,
                    [&](std::size_t place) { return simulation_.served[place].end <= end; });
    }
  }

  Weights WeightsIn(std::size_t place, Seconds begin, Seconds end, std::size_t& token) const {
    const Served& served = simulation_.served[place];
    Weights weights;
    weights.time =
        std::max(0.0, (std::min(end, served.end) - std::max(begin, served.load.arrival)).count());
    for (; token < served.tokens.size() && served.tokens[token] <= end; ++token) {
      weights.output += 1;
      weights.all += 1 + (token == 0 ? static_cast<double>(served.load.prompt) : 0);
    }
    return weights;
  }

  const Simulation& simulation_;
  std::array<std::vector<double>, AttributionScore::kRules> energy_;
};

void Compare(const Simulation& simulation, const Answers& answers, AttributionScore& score) {
  std::vector<double> energy;
  std::vector<double> prefill;
  std::vector<double> decode;
  double covered = 0;
  double prefill_covered = 0;
  double decode_covered = 0;
  double sum = 0;
  double truth_sum = 0;
  double within = 0;
  double longer = 0;
  double held = 0;
  double estimated = 0;
  double mean_truth = 0;
  for (const Served& served : simulation.served)
    mean_truth +=
        (served.prefill + served.decode).value() / static_cast<double>(simulation.served.size());
  for (const auto& [id, answer] : answers.final_energy) {
    const Served& served = simulation.served[id];
    const double truth = (served.prefill + served.decode).value();
    const double miss = std::abs(answer.energy.value() - truth);
    const double prefill_miss = std::abs((answer.prefill - served.prefill).value());
    const double decode_miss = std::abs((answer.decode - served.decode).value());
    energy.push_back(miss / truth);
    prefill.push_back(prefill_miss / served.prefill.value());
    if (served.decode > Joules(0)) decode.push_back(decode_miss / served.decode.value());
    covered += miss <= 1.96 * answer.sigma.value() ? 1 : 0;
    prefill_covered += prefill_miss <= 1.96 * answer.prefill_sigma.value() ? 1 : 0;
    decode_covered += decode_miss <= 1.96 * answer.decode_sigma.value() + 1e-9 ? 1 : 0;
    sum += answer.energy.value();
    truth_sum += truth;
    const auto provisional = answers.provisional.find(id);
    if (provisional == answers.provisional.end()) continue;
    estimated += 1;
    const double change = std::abs((provisional->second.energy - answer.energy).value());
    held += change <= 1.96 * provisional->second.sigma.value() + 1e-9 ? 1 : 0;
    if (truth > 0.1 * mean_truth)
      score.provisional_worst =
          std::max(score.provisional_worst, provisional->second.energy / answer.energy);
    if (served.end - served.load.arrival < Seconds(1)) continue;
    longer += 1;
    within += std::abs(provisional->second.energy / answer.energy - 1) <= 0.05 ? 1 : 0;
  }
  const double count = std::max<double>(1, static_cast<double>(energy.size()));
  score.coverage = covered / count;
  score.prefill_coverage = prefill_covered / count;
  score.decode_coverage = decode_covered / count;
  score.requests_over_truth = truth_sum > 0 ? sum / truth_sum : 0;
  score.provisional_within = longer > 0 ? within / longer : 1;
  score.provisional_coverage = estimated > 0 ? held / estimated : 1;
  score.mean_lag = Seconds(answers.lag / count);
  score.energy = Summarize(std::move(energy));
  score.prefill = Summarize(std::move(prefill));
  score.decode = Summarize(std::move(decode));
}

std::string LawText(const InferenceAttribution& attribution) {
  const LearnedLaw law = attribution.Law(0);
  return fmt::format(
      "F {:.3f} J, sequence {:.4f} J, context {:.3g} J, prompt {:.4f} J; {:.2f} ms, {:.1f} us, "
      "{:.1f} ns, {:.1f} us; idle {:.1f} W; budget {:.0f}; residual {:.3f}",
      law.energy.fixed.value(), law.energy.per_sequence.value(), law.energy.per_context.value(),
      law.energy.per_prompt.value(), law.fixed_time.count() * 1e3,
      law.time_per_sequence.count() * 1e6, law.time_per_context.count() * 1e9,
      law.time_per_prompt.count() * 1e6, attribution.idle_power().value(),
      attribution.TokenBudget(0), attribution.residual_ratio());
}

}  // namespace

std::filesystem::path RecordedLoadDirectory() { return RecordedData("ZEUS_LLM_TRACE_DIR", "llm"); }

Result<Load> RecordedLoad(std::string_view trace, double speed, Seconds duration) {
  const auto path = RecordedLoadDirectory() / fmt::format("azure_llm_2023_{}.csv", trace);
  ZEUS_TRY(const std::string text, ReadSmallFile(path, 16 << 20));
  Load load;
  std::optional<double> origin;
  std::size_t line = text.find('\n');
  while (line != std::string::npos && line + 1 < text.size()) {
    int hour = 0;
    int minute = 0;
    double second = 0;
    LoadPoint point{};
    if (std::sscanf(text.c_str() + line + 1, "%*d-%*d-%*d %d:%d:%lf,%u,%u", &hour, &minute, &second,
                    &point.prompt, &point.output) != 5)
      return Error{ErrorCode::kInvalidArgument, path.string() + " is not a recorded trace"};
    const double time = hour * 3600 + minute * 60 + second;
    if (!origin) origin = time;
    point.arrival = Seconds((time - *origin) / speed);
    if (point.arrival > duration) break;
    point.prompt = std::max(1U, point.prompt);
    point.output = std::max(1U, point.output);
    load.push_back(point);
    line = text.find('\n', line + 1);
  }
  return load;
}

Load SyntheticLoad(std::uint64_t seed, double requests_per_second, Seconds duration) {
  Random random(seed);
  Load load;
  Seconds time{0};
  while (true) {
    // Half of the requests follow the one before at once.
    const double gap = random.Uniform() < 0.5 ? 0.1 : 1.9;
    time += Seconds(-gap / requests_per_second * std::log(1 - random.Uniform()));
    if (time > duration) return load;
    const auto tokens = [&](double median, double spread, double most) {
      return static_cast<unsigned>(
          std::clamp(median * std::exp(spread * random.Normal()), 1.0, most));
    };
    load.push_back({time, tokens(700, 1.0, 8000), tokens(120, 0.9, 1000)});
  }
}

Result<AttributionScore> Score(const AttributionCase& scenario) {
  ZEUS_TRY(Simulation simulation, Runner(scenario).Run());
  Random random(scenario.seed);
  StarveSensor(simulation.samples, scenario.sensor_gap, random);
  const std::vector<News> news = ToNews(simulation, scenario, random);
  Proxy proxy(simulation, scenario, random);
  AttributionScore score;
  double tokens = 0;
  const TimePoint begin = scenario.stopwatch != nullptr ? scenario.stopwatch->Now() : TimePoint{};
  for (const News& item : news) {
    proxy.Report(item);
    tokens += item.kind == News::Kind::kToken ? 1 : 0;
  }
  if (scenario.stopwatch != nullptr)
    score.microseconds_per_token = (scenario.stopwatch->Now() - begin).count() * 1e6 / tokens;
  score.requests = simulation.served.size();
  score.settled = proxy.answers.final_energy.size();
  score.mean_batch = simulation.mean_batch;
  Compare(simulation, proxy.answers, score);
  score.rules = SimpleRules(simulation).Errors();
  const EnergyAccounts& accounts = proxy.attribution().accounts();
  Joules sum = accounts.idle + accounts.other;
  for (const auto& engine : accounts.engines) sum += engine.prefill + engine.decode;
  score.conservation = sum / accounts.measured - 1;
  Joules charged = accounts.idle + accounts.other;
  for (const auto& [id, energy] : proxy.answers.final_energy) charged += energy.energy;
  score.requests_conservation = charged / accounts.measured - 1;
  score.other = accounts.other;
  score.stranger = simulation.stranger;
  score.law = LawText(proxy.attribution());
  return score;
}

}  // namespace zeus::testing
