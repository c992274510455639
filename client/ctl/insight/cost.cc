// 'cost': what a job used, energy and chips, and what that costs, in the three formats.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "client/ctl/call/call_error.h"
#include "client/ctl/insight/insight.h"
#include "client/ctl/line/query_options.h"
#include "client/ctl/output/record_writer.h"
#include "client/ctl/text/format.h"
#include "client/ctl/text/json_writer.h"
#include "client/ctl/text/table.h"
#include "client/ctl/text/text.h"

namespace tacho::ctl {
namespace {

// "productive_step"; the number of a bucket that only a newer collector knows.
std::string BucketText(v1::GoodputBucket bucket) {
  constexpr absl::string_view kPrefix = "GOODPUT_BUCKET_";
  const std::string& name = v1::GoodputBucket_Name(bucket);
  if (name.size() <= kPrefix.size()) return absl::StrCat(static_cast<int>(bucket));
  return absl::AsciiStrToLower(name.substr(kPrefix.size()));
}

std::string Money(double amount, const std::string& currency) {
  return absl::StrCat(ReadableNumber(amount), " ", Printable(currency));
}

std::string HoursText(double chip_seconds) { return ReadableNumber(chip_seconds / 3600); }

// The cost of a goodput bucket, as far as it is known.
bool HasCost(const v1::BucketCost& bucket) {
  return bucket.has_chip_cost() || bucket.has_energy_cost();
}
double CostOf(const v1::BucketCost& bucket) { return bucket.chip_cost() + bucket.energy_cost(); }

// A column of the table of buckets: "-" where a bucket has no time or its amount is not known.
template <typename Known, typename Amount>
std::vector<std::string> Column(const v1::CostResponse& answer, const Known& known,
                                const Amount& amount) {
  std::vector<double> amounts;
  for (const v1::BucketCost& bucket : answer.buckets()) {
    if (bucket.ns() != 0 && known(bucket)) amounts.push_back(amount(bucket));
  }
  const std::vector<std::string> texts = ReadableColumn(amounts);
  std::vector<std::string> column;
  size_t next = 0;
  for (const v1::BucketCost& bucket : answer.buckets()) {
    column.push_back(bucket.ns() != 0 && known(bucket) ? texts[next++] : "-");
  }
  return column;
}

void PrintBuckets(const Invocation& invocation, const v1::CostResponse& answer) {
  const auto chips = Column(
      answer, [](const v1::BucketCost& bucket) { return bucket.has_chip_seconds(); },
      [](const v1::BucketCost& bucket) { return bucket.chip_seconds() / 3600; });
  const auto energy = Column(
      answer, [](const v1::BucketCost& bucket) { return bucket.has_joules(); },
      [](const v1::BucketCost& bucket) { return KilowattHours(bucket.joules()); });
  const auto costs = Column(answer, HasCost, CostOf);
  Table table({{"BUCKET"},
               {"TIME", Align::kRight},
               {"CHIP HOURS", Align::kRight},
               {"KWH", Align::kRight},
               {answer.currency().empty() ? "COST" : answer.currency(), Align::kRight},
               {"%", Align::kRight}});
  for (int i = 0; i < answer.buckets_size(); ++i) {
    const v1::BucketCost& bucket = answer.buckets(i);
    const auto at = static_cast<size_t>(i);
    const bool share = bucket.ns() != 0 && HasCost(bucket) && answer.cost() > 0;
    table.AddRow({BucketText(bucket.bucket()),
                  bucket.ns() == 0 ? "-" : ReadableDuration(absl::Nanoseconds(bucket.ns())),
                  chips[at], energy[at], costs[at],
                  share ? ShareNumber(CostOf(bucket) / answer.cost()) : "-"});
  }
  table.Print(*invocation.env.out, invocation.env.width, invocation.env.unicode);
}

// "64 TPU v5p, reserved, at 4.2 USD an hour".
std::string ChipsText(const v1::AttemptCost& attempt, const std::string& currency) {
  if (!attempt.has_chips()) return "not known";
  std::string text = ReadableNumber(attempt.chips());
  absl::StrAppend(&text, " ", attempt.kind().empty() ? "chips" : attempt.kind());
  if (!attempt.capacity_type().empty()) absl::StrAppend(&text, ", ", attempt.capacity_type());
  if (attempt.has_price_per_chip_hour()) {
    absl::StrAppend(&text, ", at ", Money(attempt.price_per_chip_hour(), currency), " an hour");
  }
  return text;
}

// Says in words which figures are missing. Empty if none is.
std::string ChipsRemark(const v1::CostResponse& answer) {
  if (answer.no_chip_cost().empty()) return "";
  if (!answer.has_chip_cost()) return answer.no_chip_cost();
  return absl::StrCat(HoursText(answer.chip_seconds_not_priced()),
                      " chip hours are not in it: ", answer.no_chip_cost());
}

std::string EnergyText(const v1::JobEnergy& energy) {
  std::string text = absl::StrCat(ReadableNumber(KilowattHours(energy.joules())), " kWh of ");
  if (energy.hosts() > 0) absl::StrAppend(&text, Count(energy.hosts(), "host"));
  if (energy.hosts() > 0 && energy.chips() > 0) absl::StrAppend(&text, " and ");
  if (energy.chips() > 0) absl::StrAppend(&text, Count(energy.chips(), "chip"));
  const double due = std::max(energy.due_seconds(), 1e-9);
  absl::StrAppend(&text, ", power known for ", ShareText(energy.covered_seconds() / due),
                  " of their time");
  if (energy.gaps() > 0) absl::StrAppend(&text, ", ", Count(energy.gaps(), "gap"));
  if (energy.refused() > 0) absl::StrAppend(&text, ", ", Count(energy.refused(), "wrong sample"));
  if (energy.read_every() > 1) {
    absl::StrAppend(&text, "; one host in ", energy.read_every(), " was read");
  }
  return text;
}

void PrintFacts(const Invocation& invocation, const v1::CostResponse& answer) {
  // The empty headings print an empty line before the table.
  Table table({{""}, {""}});
  // An attempt on the same chips as the one before has no line of its own.
  std::vector<std::pair<std::string, std::string>> chips;
  for (const v1::AttemptCost& attempt : answer.attempts()) {
    const std::string text = ChipsText(attempt, answer.currency());
    if (!chips.empty() && chips.back().second == text) continue;
    chips.emplace_back(absl::StrCat("chips from attempt ", attempt.attempt()), text);
  }
  for (const auto& [name, text] : chips) table.AddRow({chips.size() == 1 ? "chips" : name, text});
  const auto money = [&](const char* name, bool known, double amount, const std::string& remark) {
    if (known) table.AddRow({name, absl::StrCat(Money(amount, answer.currency()), remark)});
  };
  money("cost of chips", answer.has_chip_cost(), answer.chip_cost(), "");
  if (const std::string remark = ChipsRemark(answer); !remark.empty()) {
    table.AddRow({answer.has_chip_cost() ? "" : "cost of chips", remark});
  }
  if (answer.has_energy()) table.AddRow({"energy", EnergyText(answer.energy())});
  money("cost of energy", answer.has_energy_cost(), answer.energy_cost(), "");
  if (!answer.has_energy_cost()) table.AddRow({"cost of energy", answer.no_energy_cost()});
  money("a step", answer.has_cost_per_step(), answer.cost_per_step(), "");
  money("a million tokens", answer.has_cost_per_million_tokens(), answer.cost_per_million_tokens(),
        "");
  const v1::AccuracyGain& gain = answer.accuracy();
  money("a point of accuracy", answer.has_cost_per_accuracy_point(),
        answer.cost_per_accuracy_point(),
        absl::StrCat(": ", gain.metric(), " rose from ", ReadableNumber(gain.first()), " to ",
                     ReadableNumber(gain.best())));
  table.Print(*invocation.env.out, invocation.env.width, invocation.env.unicode);
}

void PrintCostTable(const Invocation& invocation, const v1::CostResponse& answer) {
  std::ostream& out = *invocation.env.out;
  out << Printable(answer.job()) << ": ";
  if (answer.has_cost()) out << Money(answer.cost(), answer.currency()) << ", ";
  if (answer.has_energy()) {
    out << ReadableNumber(KilowattHours(answer.energy().joules())) << " kWh, ";
  }
  out << ReadableDuration(absl::Nanoseconds(answer.end_unix_ns() - answer.begin_unix_ns()))
      << " of wall time\n\n";
  PrintBuckets(invocation, answer);
  PrintFacts(invocation, answer);
}

void WriteEnergyJson(const v1::JobEnergy& energy, JsonWriter* json) {
  json->Field("joules", energy.joules());
  json->Field("kilowatt_hours", KilowattHours(energy.joules()));
  json->Field("chip_joules", energy.chip_joules());
  json->Field("host_joules", energy.host_joules());
  json->Field("covered_seconds", energy.covered_seconds());
  json->Field("due_seconds", energy.due_seconds());
  json->Field("gaps", energy.gaps());
  json->Field("refused", energy.refused());
  json->Field("hosts", energy.hosts());
  json->Field("chips", energy.chips());
  json->Field("read_every", energy.read_every());
}

void WriteAttemptJson(const v1::AttemptCost& attempt, JsonWriter* json) {
  json->Field("attempt", attempt.attempt());
  json->Field("chips", Maybe(attempt.has_chips(), attempt.chips()));
  json->Field("kind", attempt.kind());
  json->Field("capacity_type", attempt.capacity_type());
  json->Field("price_kind", attempt.price_kind());
  json->Field("price_capacity_type", attempt.price_capacity_type());
  json->Field("price_per_chip_hour",
              Maybe(attempt.has_price_per_chip_hour(), attempt.price_per_chip_hour()));
  json->Field("chip_seconds", Maybe(attempt.has_chip_seconds(), attempt.chip_seconds()));
  json->Field("chip_cost", Maybe(attempt.has_chip_cost(), attempt.chip_cost()));
}

void WriteBucketJson(const v1::BucketCost& bucket, JsonWriter* json) {
  json->Field("bucket", BucketText(bucket.bucket()));
  json->Field("seconds", static_cast<double>(bucket.ns()) / 1e9);
  json->Field("chip_seconds", Maybe(bucket.has_chip_seconds(), bucket.chip_seconds()));
  json->Field("chip_cost", Maybe(bucket.has_chip_cost(), bucket.chip_cost()));
  json->Field("joules", Maybe(bucket.has_joules(), bucket.joules()));
  json->Field("energy_cost", Maybe(bucket.has_energy_cost(), bucket.energy_cost()));
}

void PrintCostJson(const Invocation& invocation, const v1::CostResponse& answer) {
  JsonWriter json(*invocation.env.out);
  json.Object([&] {
    const auto number = [&](const char* name, bool known, double value) {
      json.Field(name, Maybe(known, value));
    };
    json.Field("job", answer.job());
    json.Field("currency", answer.currency());
    json.TimeFields("begin", Maybe(answer.begin_unix_ns() != 0, answer.begin_unix_ns()));
    json.TimeFields("end", Maybe(answer.end_unix_ns() != 0, answer.end_unix_ns()));
    number("cost", answer.has_cost(), answer.cost());
    number("chip_cost", answer.has_chip_cost(), answer.chip_cost());
    json.Field("no_chip_cost", answer.no_chip_cost());
    number("energy_cost", answer.has_energy_cost(), answer.energy_cost());
    json.Field("no_energy_cost", answer.no_energy_cost());
    number("chip_seconds", answer.has_chip_seconds(), answer.chip_seconds());
    json.Field("chip_seconds_not_priced", answer.chip_seconds_not_priced());
    json.Key("energy");
    if (answer.has_energy()) {
      json.Object([&] { WriteEnergyJson(answer.energy(), &json); });
    } else {
      json.Null();
    }
    json.Field("productive_steps", answer.productive_steps());
    number("cost_per_step", answer.has_cost_per_step(), answer.cost_per_step());
    number("tokens", answer.has_tokens(), answer.tokens());
    number("cost_per_million_tokens", answer.has_cost_per_million_tokens(),
           answer.cost_per_million_tokens());
    json.Key("accuracy");
    if (answer.has_accuracy()) {
      const v1::AccuracyGain& gain = answer.accuracy();
      json.Object([&] {
        json.Field("metric", gain.metric());
        json.Field("task", Maybe(gain.has_task(), uint64_t{gain.task()}));
        json.Field("first", gain.first());
        json.Field("best", gain.best());
        json.Field("points", gain.points());
      });
    } else {
      json.Null();
    }
    number("cost_per_accuracy_point", answer.has_cost_per_accuracy_point(),
           answer.cost_per_accuracy_point());
    json.Objects("buckets", answer.buckets(),
                 [&](const v1::BucketCost& bucket) { WriteBucketJson(bucket, &json); });
    json.Objects("attempts", answer.attempts(),
                 [&](const v1::AttemptCost& attempt) { WriteAttemptJson(attempt, &json); });
  });
  *invocation.env.out << "\n";
}

void PrintCostCsv(const Invocation& invocation, const v1::CostResponse& answer) {
  using ColumnKind = RecordColumn::Kind;
  RecordWriter writer(invocation, "cost",
                      {{"bucket", "BUCKET", ColumnKind::kText},
                       {"seconds", "SECONDS", ColumnKind::kNumber},
                       {"chip_seconds", "CHIP SECONDS", ColumnKind::kNumber},
                       {"joules", "JOULES", ColumnKind::kNumber},
                       {"chip_cost", "CHIPS", ColumnKind::kNumber},
                       {"energy_cost", "ENERGY", ColumnKind::kNumber},
                       {"currency", "CURRENCY", ColumnKind::kText}});
  const auto cell = [](bool known, double value) { return known ? Cell(value) : Cell(); };
  for (const v1::BucketCost& bucket : answer.buckets()) {
    writer.Row({BucketText(bucket.bucket()), static_cast<double>(bucket.ns()) / 1e9,
                cell(bucket.has_chip_seconds(), bucket.chip_seconds()),
                cell(bucket.has_joules(), bucket.joules()),
                cell(bucket.has_chip_cost(), bucket.chip_cost()),
                cell(bucket.has_energy_cost(), bucket.energy_cost()), answer.currency()});
  }
  writer.Finish();
}

int RunCost(const Invocation& invocation) {
  v1::CostRequest request;
  request.set_job(invocation.Positional(0));
  QueryClient client = Connect(invocation);
  const auto answer = client.Cost(request);
  if (!answer.ok()) return JobCallError(invocation, client, request.job(), answer.status());
  switch (invocation.common.format) {
    case Format::kTable:
      PrintCostTable(invocation, *answer);
      break;
    case Format::kJson:
      PrintCostJson(invocation, *answer);
      break;
    case Format::kCsv:
      PrintCostCsv(invocation, *answer);
      break;
  }
  return kOk;
}

}  // namespace

Command CostCommand() {
  return {
      .name = "cost",
      .group = CommandGroup::kHistory,
      .operands = "JOB",
      .summary = "Show what a job used, energy and chips, and what that costs",
      .details =
          R"(Energy comes from the recorded power of the job's chips and hosts. A time without samples that
is longer than a few sample intervals is not bridged: the answer says for how much of the time power
is known, and the energy is that of the known time. Prices come from 'cost' of the collector's
configuration; without them, energy and chip hours are shown all the same. docs/cost.md defines the
figures.

Examples:
  tachoctl cost bert-base
  tachoctl cost bert-base -o json | jq .energy.kilowatt_hours

JSON: {"job", "currency", "begin", "begin_unix_ns", "end", "end_unix_ns", "cost", "chip_cost",
  "no_chip_cost", "energy_cost", "no_energy_cost", "chip_seconds", "chip_seconds_not_priced",
  "energy": null or {"joules", "kilowatt_hours", "chip_joules", "host_joules", "covered_seconds",
  "due_seconds", "gaps", "refused", "hosts", "chips", "read_every"}, "productive_steps",
  "cost_per_step", "tokens", "cost_per_million_tokens", "accuracy": null or {"metric", "task" or
  null, "first", "best", "points"}, "cost_per_accuracy_point", "buckets": [{"bucket", "seconds",
  "chip_seconds", "chip_cost", "joules", "energy_cost"}], "attempts": [{"attempt", "chips", "kind",
  "capacity_type", "price_kind", "price_capacity_type", "price_per_chip_hour", "chip_seconds",
  "chip_cost"}]}; a number is null where it is not known, and "no_chip_cost" and "no_energy_cost"
  say why
CSV: bucket, seconds, chip_seconds, joules, chip_cost, energy_cost, currency.)",
      .min_operands = 1,
      .max_operands = 1,
      .run = RunCost};
}

}  // namespace tacho::ctl
