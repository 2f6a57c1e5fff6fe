#include "zeus/training/callback_list.h"

#include <algorithm>
#include <exception>

#include "zeus/base/log.h"
#include "zeus/base/text.h"

namespace zeus {
namespace {

void LogFailure(std::size_t position, const char* event, const char* reason) {
  log::Warning(
      "training callback {} failed at {} and is not called any more, but for the end of "
      "training: {}",
      position, event, Printable(reason));
}

}  // namespace

CallbackList::CallbackList(const std::vector<TrainingCallback*>& callbacks) {
  for (std::size_t i = 0; i < callbacks.size(); ++i)
    if (callbacks[i] != nullptr) entries_.push_back({.callback = callbacks[i], .position = i});
}

template <class Function>
void CallbackList::TellOne(Entry& entry, const char* event, Function function) {
  try {
    function(*entry.callback);
    return;
  } catch (const std::exception& exception) {
    LogFailure(entry.position, event, exception.what());
  } catch (...) {
    LogFailure(entry.position, event, "an exception of its own kind");
  }
  entry.failed = true;
}

template <class Function>
void CallbackList::Tell(const char* event, Function function) {
  for (Entry& entry : entries_)
    if (!entry.failed) TellOne(entry, event, function);
}

void CallbackList::TrainBegin() {
  Tell("the begin of training", [](TrainingCallback& callback) { callback.OnTrainBegin(); });
}
void CallbackList::EpochBegin(std::int64_t epoch) {
  Tell("the begin of an epoch", [=](TrainingCallback& callback) { callback.OnEpochBegin(epoch); });
}
void CallbackList::StepBegin() {
  Tell("the begin of a step", [](TrainingCallback& callback) { callback.OnStepBegin(); });
}
void CallbackList::StepEnd() {
  Tell("the end of a step", [](TrainingCallback& callback) { callback.OnStepEnd(); });
}
void CallbackList::EpochEnd(std::int64_t epoch) {
  Tell("the end of an epoch", [=](TrainingCallback& callback) { callback.OnEpochEnd(epoch); });
}
void CallbackList::Evaluate(double metric) {
  Tell("an evaluation", [=](TrainingCallback& callback) { callback.OnEvaluate(metric); });
}
void CallbackList::TrainEnd() {
  for (Entry& entry : entries_) {
    TellOne(entry, "the end of training",
            [](TrainingCallback& callback) { callback.OnTrainEnd(); });
  }
}

bool CallbackList::ShouldStop() const {
  return std::ranges::any_of(
      entries_, [](const Entry& entry) { return !entry.failed && entry.callback->ShouldStop(); });
}

}  // namespace zeus
