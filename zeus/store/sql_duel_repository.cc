#include "zeus/store/sql_duel_repository.h"

#include <fmt/format.h>

#include <functional>
#include <optional>
#include <string_view>

#include "zeus/base/json.h"
#include "zeus/base/text.h"
#include "zeus/store/sql_connection.h"

namespace zeus {
namespace {

using colosseum::AnswerEnergy;
using colosseum::Answering;
using colosseum::Choice;
using colosseum::Contestant;
using colosseum::Duel;
using colosseum::Expired;
using colosseum::Failed;
using colosseum::Game;
using colosseum::Irregularity;
using colosseum::PowerSample;
using colosseum::Revealed;
using colosseum::Side;
using colosseum::Stage;
using colosseum::Vote;
using colosseum::Voting;
using colosseum::Weighing;

const std::string kDuelsTable = "duels";
const std::string kDuelColumns =
    "id, created_at, preference, prompt, stage, stage_at, preferred, failure";
const std::string kAnswerColumns =
    "duel_id, side, model, request, prompt_tokens, output_tokens, duration_seconds, "
    "energy_joules, sigma_joules, prefill_joules, prefill_sigma_joules, decode_joules, "
    "decode_sigma_joules, final, absent_reason, power_watts, answer_text";
constexpr int kAnswerColumnCount = 17;
const std::string kVoteColumns = "duel_id, ballot, choice, at";
const std::string kIrregularityColumns = "duel_id, number, what, at";

// A query that gives all rows of one duel, or of many.
using AskRows = std::function<Result<SqlAnswer>(const std::string& sql, const SqlRow& values)>;

Error NoDuel(const std::string& id) {
  return Error{ErrorCode::kNotFound, "id: there is no duel " + Quote(id)};
}

std::string SideName(Side side) { return std::string(Name(colosseum::For(side))); }

std::optional<Side> FindSide(std::string_view name) {
  if (name == "a") return Side::kA;
  if (name == "b") return Side::kB;
  return std::nullopt;
}

SqlValue NumberOrNull(const std::optional<double>& value) {
  return value ? SqlValue(*value) : SqlValue();
}
SqlValue JoulesOrNull(const std::optional<Joules>& value) {
  return value ? SqlValue(value->value()) : SqlValue();
}
SqlValue TextOrNull(const std::string& text) { return text.empty() ? SqlValue() : SqlValue(text); }

std::optional<Joules> ToJoules(const std::optional<double>& value) {
  if (!value) return std::nullopt;
  return Joules(*value);
}

std::string PowerText(const std::vector<PowerSample>& samples) {
  Json list = Json::array();
  for (const PowerSample& sample : samples)
    list.push_back({sample.at.count(), sample.power.value()});
  return JsonText(list);
}

Result<std::vector<PowerSample>> PowerFrom(const Json& json) {
  using Pairs = std::vector<std::pair<double, double>>;
  ZEUS_TRY(const Pairs pairs, GetField<Pairs>(Json{{"power", json}}, "power"));
  std::vector<PowerSample> samples;
  for (const auto& [at, power] : pairs)
    samples.push_back({.at = Seconds(at), .power = Watts(power)});
  return samples;
}

// --- rows ---

// The columns that name the stage: stage, stage_at, preferred, failure.
SqlRow StageRow(const Duel& duel) {
  const auto* weighing = std::get_if<Weighing>(&duel.stage);
  const auto* failed = std::get_if<Failed>(&duel.stage);
  return Values(std::string(NameOfStage(duel.stage)), SqlTime(duel.stage_at),
                weighing == nullptr ? SqlValue() : SqlValue(SideName(weighing->preferred)),
                failed == nullptr ? SqlValue() : SqlValue(failed->reason));
}

SqlRow ToRow(const Duel& duel) {
  SqlRow row = Values(duel.id, SqlTime(duel.created_at), duel.preference, TextOrNull(duel.prompt));
  for (SqlValue& value : StageRow(duel)) row.push_back(std::move(value));
  return row;
}

SqlRow ToRow(const std::string& id, Side side, const Contestant& answer) {
  const AnswerEnergy none;
  const AnswerEnergy& energy = answer.energy ? *answer.energy : none;
  const auto known = [&](Joules value) {
    return answer.energy ? SqlValue(value.value()) : SqlValue();
  };
  return Values(id, SideName(side), answer.model, answer.request,
                NumberOrNull(answer.prompt_tokens), NumberOrNull(answer.output_tokens),
                answer.duration ? SqlValue(answer.duration->count()) : SqlValue(),
                known(energy.energy), known(energy.sigma), JoulesOrNull(energy.prefill),
                JoulesOrNull(energy.prefill_sigma), JoulesOrNull(energy.decode),
                JoulesOrNull(energy.decode_sigma), std::int64_t{energy.final ? 1 : 0},
                answer.absent_reason, PowerText(answer.power), TextOrNull(answer.text));
}

SqlRow ToRow(const std::string& id, const Vote& vote) {
  return Values(id, std::string(Name(vote.ballot)), std::string(Name(vote.choice)),
                SqlTime(vote.at));
}

SqlRow ToRow(const std::string& id, std::size_t number, const Irregularity& irregularity) {
  return Values(id, static_cast<std::int64_t>(number), irregularity.what, SqlTime(irregularity.at));
}

Result<Stage> StageFrom(const std::string& name, const std::string& preferred,
                        const std::string& failure) {
  if (name == "answering") return Stage(Answering{});
  if (name == "voting") return Stage(Voting{});
  if (name == "revealed") return Stage(Revealed{});
  if (name == "expired") return Stage(Expired{});
  if (name == "failed") return Stage(Failed{failure});
  const auto side = FindSide(preferred);
  if (name == "weighing" && side) return Stage(Weighing{*side});
  return InvalidArgument("unknown stage " + Quote(name));
}

Result<Duel> DuelFrom(SqlRow row) {
  RowReader reader(kDuelsTable, std::move(row));
  Duel duel;
  duel.id = reader.Text();
  duel.created_at = reader.Time();
  duel.preference = reader.Text();
  duel.prompt = reader.TextOrNothing();
  const std::string stage = reader.Text();
  duel.stage_at = reader.Time();
  const std::string preferred = reader.TextOrNothing();
  duel.stage = reader.Checked(StageFrom(stage, preferred, reader.TextOrNothing()));
  ZEUS_RETURN_IF_ERROR(reader.status());
  return duel;
}

// Reads a row of kAnswerColumns into the side that it is about.
Status AddAnswer(SqlRow row, Duel& duel) {
  RowReader reader("duel_answers", std::move(row));
  (void)reader.Text();
  Contestant& answer = duel.at(reader.Named<Side>(FindSide));
  answer.model = reader.Text();
  answer.request = reader.Text();
  answer.prompt_tokens = reader.OptionalReal();
  answer.output_tokens = reader.OptionalReal();
  if (const auto duration = reader.OptionalReal()) answer.duration = Seconds(*duration);
  const auto joules = ToJoules(reader.OptionalReal());
  const auto sigma = ToJoules(reader.OptionalReal());
  AnswerEnergy energy{.energy = joules.value_or(Joules(0)), .sigma = sigma.value_or(Joules(0))};
  energy.prefill = ToJoules(reader.OptionalReal());
  energy.prefill_sigma = ToJoules(reader.OptionalReal());
  energy.decode = ToJoules(reader.OptionalReal());
  energy.decode_sigma = ToJoules(reader.OptionalReal());
  energy.final = reader.Integer() != 0;
  if (joules) answer.energy = energy;
  answer.absent_reason = reader.Text();
  answer.power = reader.Checked(PowerFrom(reader.JsonValue()));
  answer.text = reader.TextOrNothing();
  return reader.status();
}

Result<Vote> VoteFrom(SqlRow row) {
  RowReader reader("duel_votes", std::move(row));
  (void)reader.Text();
  Vote vote;
  vote.ballot = reader.Named<colosseum::Ballot>(colosseum::FindBallot);
  vote.choice = reader.Named<Choice>(colosseum::FindChoice);
  vote.at = reader.Time();
  ZEUS_RETURN_IF_ERROR(reader.status());
  return vote;
}

Result<Irregularity> IrregularityFrom(SqlRow row) {
  RowReader reader("duel_irregularities", std::move(row));
  (void)reader.Text();
  (void)reader.Integer();
  Irregularity irregularity;
  irregularity.what = reader.Text();
  irregularity.at = reader.Time();
  ZEUS_RETURN_IF_ERROR(reader.status());
  return irregularity;
}

Result<Game> GameFrom(SqlRow row) {
  RowReader reader(kDuelsTable, std::move(row));
  Game game;
  for (std::string& model : game.models) model = reader.Text();
  for (auto& joules : game.joules) joules = reader.OptionalReal();
  for (auto& tokens : game.output_tokens) tokens = reader.OptionalReal();
  game.vote = reader.Named<Choice>(colosseum::FindChoice);
  game.worth = colosseum::FindChoice(reader.TextOrNothing());
  game.change = colosseum::FindChoice(reader.TextOrNothing());
  game.revealed = reader.Text() == "revealed";
  ZEUS_RETURN_IF_ERROR(reader.status());
  return game;
}

// Reads everything that belongs to a duel and is not in its own row.
Status ReadRest(const AskRows& ask, Duel& duel) {
  const SqlRow id = Values(duel.id);
  ZEUS_TRY(SqlAnswer answers,
           ask("SELECT " + kAnswerColumns + " FROM duel_answers WHERE duel_id = $1", id));
  for (SqlRow& row : answers.rows) ZEUS_RETURN_IF_ERROR(AddAnswer(std::move(row), duel));
  ZEUS_TRY(SqlAnswer votes,
           ask("SELECT " + kVoteColumns + " FROM duel_votes WHERE duel_id = $1 ORDER BY at, ballot",
               id));
  ZEUS_TRY(duel.votes, AllFrom(std::move(votes), VoteFrom));
  ZEUS_TRY(SqlAnswer irregularities,
           ask("SELECT " + kIrregularityColumns +
                   " FROM duel_irregularities WHERE duel_id = $1 ORDER BY number",
               id));
  ZEUS_TRY(duel.irregularities, AllFrom(std::move(irregularities), IrregularityFrom));
  return Ok();
}

// --- changes ---

void WriteAnswer(SqlTransaction& rows, const std::string& id, Side side, const Contestant& answer) {
  std::string set;
  for (int i = 3; i <= kAnswerColumnCount; ++i) set += fmt::format("{}${}", i > 3 ? ", " : "", i);
  // Both engines know lists of columns on the left of a SET.
  static const std::string kColumns = kAnswerColumns.substr(kAnswerColumns.find("model"));
  rows.Write(fmt::format("UPDATE duel_answers SET ({}) = ({}) WHERE duel_id = $1 AND side = $2",
                         kColumns, set),
             ToRow(id, side, answer));
}

// Writes the difference between two states of one duel.
Status WriteChange(SqlTransaction& rows, const Duel& before, const Duel& after) {
  for (const Side side : colosseum::kSides)
    if (before.at(side) != after.at(side)) WriteAnswer(rows, after.id, side, after.at(side));
  for (std::size_t i = before.votes.size(); i < after.votes.size(); ++i)
    rows.Write(InsertInto("duel_votes", kVoteColumns, 4), ToRow(after.id, after.votes[i]));
  for (std::size_t i = before.irregularities.size(); i < after.irregularities.size(); ++i)
    rows.Write(InsertInto("duel_irregularities", kIrregularityColumns, 4),
               ToRow(after.id, i, after.irregularities[i]));
  if (before.stage == after.stage && before.stage_at == after.stage_at) return Ok();
  SqlRow values = Values(after.id);
  for (SqlValue& value : StageRow(after)) values.push_back(std::move(value));
  ZEUS_RETURN_IF_ERROR(CheckValues(values, "a stage"));
  rows.Write(
      "UPDATE duels SET stage = $2, stage_at = $3, preferred = $4, failure = $5 WHERE id = $1",
      std::move(values));
  return Ok();
}

}  // namespace

Status SqlDuelRepository::Insert(const Duel& duel) {
  const SqlRow row = ToRow(duel);
  ZEUS_RETURN_IF_ERROR(CheckValues(row, "a duel"));
  return database_->Write([&](StoreTransaction& transaction) -> Status {
    SqlTransaction& rows = transaction.rows();
    ZEUS_TRY(const bool inserted, rows.InsertNew(kDuelsTable, kDuelColumns, row));
    if (!inserted) return Error{ErrorCode::kConflict, "id: there is a duel " + Quote(duel.id)};
    for (const Side side : colosseum::kSides) {
      SqlRow answer = ToRow(duel.id, side, duel.at(side));
      ZEUS_RETURN_IF_ERROR(CheckValues(answer, "an answer"));
      rows.Write(InsertInto("duel_answers", kAnswerColumns, kAnswerColumnCount), std::move(answer));
    }
    return WriteChange(
        rows, {.id = duel.id, .stage = duel.stage, .stage_at = duel.stage_at, .sides = duel.sides},
        duel);
  });
}

Result<Duel> SqlDuelRepository::Find(const std::string& id) {
  static const std::string kSelect = "SELECT " + kDuelColumns + " FROM duels WHERE id = $1";
  const AskRows ask = [this](const std::string& sql, const SqlRow& values) {
    return database_->Read(sql, values);
  };
  ZEUS_TRY(SqlAnswer answer, ask(kSelect, Values(id)));
  if (answer.rows.empty()) return NoDuel(id);
  ZEUS_TRY(Duel duel, DuelFrom(std::move(answer.rows.front())));
  ZEUS_RETURN_IF_ERROR(ReadRest(ask, duel));
  return duel;
}

Status SqlDuelRepository::Update(const std::string& id, const Change& change) {
  return database_->Write([&](StoreTransaction& transaction) -> Status {
    SqlTransaction& rows = transaction.rows();
    SqlAnswer answer;
    ZEUS_TRY(const bool there, rows.Lock(kDuelsTable, id, kDuelColumns, answer));
    if (!there) return NoDuel(id);
    ZEUS_TRY(const Duel stored, DuelFrom(std::move(answer.rows.front())));
    Duel before = stored;
    ZEUS_RETURN_IF_ERROR(ReadRest(
        [&](const std::string& sql, const SqlRow& values) { return rows.Ask(sql, values); },
        before));
    Duel after = before;
    ZEUS_RETURN_IF_ERROR(change(after));
    for (const Side side : colosseum::kSides)
      ZEUS_RETURN_IF_ERROR(CheckValues(ToRow(id, side, after.at(side)), "an answer"));
    return WriteChange(rows, before, after);
  });
}

Result<std::vector<Duel>> SqlDuelRepository::ListRevealed(const colosseum::DuelQuery& query) {
  std::string sql = "SELECT " + kDuelColumns + " FROM duels WHERE stage = 'revealed'";
  SqlRow values = Values(std::int64_t{query.limit});
  if (query.before) {
    sql += " AND created_at < $2";
    values.emplace_back(SqlTime(*query.before));
  }
  const AskRows ask = [this](const std::string& text, const SqlRow& row) {
    return database_->Read(text, row);
  };
  ZEUS_TRY(SqlAnswer answer, ask(sql + " ORDER BY created_at DESC, id DESC LIMIT $1", values));
  ZEUS_TRY(std::vector<Duel> duels, AllFrom(std::move(answer), DuelFrom));
  for (Duel& duel : duels) ZEUS_RETURN_IF_ERROR(ReadRest(ask, duel));
  return duels;
}

Result<std::vector<Game>> SqlDuelRepository::Games() {
  static const std::string kSelect =
      "SELECT a.model, b.model, a.energy_joules, b.energy_joules, a.output_tokens,"
      " b.output_tokens, r.choice, w.choice, c.choice, d.stage"
      " FROM duels d"
      " JOIN duel_answers a ON a.duel_id = d.id AND a.side = 'a'"
      " JOIN duel_answers b ON b.duel_id = d.id AND b.side = 'b'"
      " JOIN duel_votes r ON r.duel_id = d.id AND r.ballot = 'response'"
      " LEFT JOIN duel_votes w ON w.duel_id = d.id AND w.ballot = 'worth'"
      " LEFT JOIN duel_votes c ON c.duel_id = d.id AND c.ballot = 'change'"
      " WHERE d.stage IN ('revealed', 'expired')";
  ZEUS_TRY(SqlAnswer answer, database_->Read(kSelect, {}));
  return AllFrom(std::move(answer), GameFrom);
}

Result<std::vector<std::string>> SqlDuelRepository::Overdue(WallTime before, int limit) {
  ZEUS_TRY(const SqlAnswer answer,
           database_->Read("SELECT id FROM duels WHERE stage IN ('answering', 'voting', "
                           "'weighing') AND stage_at < $1 ORDER BY stage_at LIMIT $2",
                           Values(SqlTime(before), std::int64_t{limit})));
  std::vector<std::string> ids;
  for (const SqlRow& row : answer.rows) ids.push_back(std::get<std::string>(row.at(0)));
  return ids;
}

}  // namespace zeus
