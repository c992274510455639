// Jobs as a ledger sees them, without a store.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "server/goodput/ledger.h"

namespace tacho::server::goodput {

inline constexpr int64_t kSecond = 1'000'000'000;

// Rows of one attempt, ascending by time.
using Rows = std::vector<StepRow>;

struct LedgerJob {
  std::vector<AttemptFacts> attempts;
  std::vector<Rows> rows;  // By attempt.
  int64_t now_ns = 0;

  // What GoodputOf() does with a store.
  LedgerMaker Make(const LedgerOptions& options = {}) const {
    const std::vector<AttemptSpan> spans = SpansOf(attempts, now_ns);
    const auto in_span = [](const AttemptSpan& span, const StepRow& row) {
      return row.time_ns >= span.begin_ns && row.time_ns <= span.end_ns;
    };
    RewindFinder rewinds;
    for (const AttemptSpan& span : spans) {
      rewinds.BeginSpan();
      for (const StepRow& row : rows[span.index]) {
        if (in_span(span, row)) rewinds.Add(row.step);
      }
    }
    LedgerMaker maker(attempts, spans, rewinds.Floors(), now_ns, options);
    for (const AttemptSpan& span : spans) {
      maker.BeginSpan();
      for (const StepRow& row : rows[span.index]) {
        if (in_span(span, row)) maker.AddStep(row);
      }
    }
    maker.Finish();
    return maker;
  }
};

// One attempt from 0 s: steps 0, 1, … of a second each from `first_s` on.
inline LedgerJob Stepping(int64_t first_s, int64_t steps) {
  LedgerJob job;
  job.attempts = {{.attempt = 0, .first_ns = 0, .last_ns = (first_s + steps - 1) * kSecond}};
  job.rows.resize(1);
  for (int64_t i = 0; i < steps; ++i) {
    job.rows[0].push_back({.time_ns = (first_s + i) * kSecond, .step = i});
  }
  job.now_ns = job.attempts[0].last_ns;
  return job;
}

// Whatever may come: attempts that overlap, clocks that are set back, phases without an end.
class RandomLedgerJob {
 public:
  explicit RandomLedgerJob(uint32_t seed) : random_(seed) {}

  LedgerJob Make() {
    LedgerJob job;
    int64_t time = Below(1000);
    int64_t step = Below(10);
    const int attempts = 1 + Below(4);
    for (int i = 0; i < attempts; ++i) {
      AddAttempt(static_cast<uint32_t>(i), &time, &step, &job);
      time += Below(4) == 0 ? -Below(500) : Below(4000);  // Attempts overlap, clocks are set back.
      step -= Below(30);
    }
    job.now_ns = std::max<int64_t>(0, time + Below(5) * 1000) * kSecond / 7;
    return job;
  }

 private:
  int Below(int end) { return static_cast<int>(random_() % static_cast<uint32_t>(end)); }
  int64_t Ns(int64_t time) { return time * kSecond / 7 + Below(1000); }
  double Phase() { return Below(4) == 0 ? Below(1000) / 100.0 : kAbsent; }

  void AddAttempt(uint32_t number, int64_t* time, int64_t* step, LedgerJob* job) {
    AttemptFacts facts = {.attempt = number, .first_ns = Ns(*time), .last_ns = 0};
    Rows rows;
    const int events = Below(200);
    for (int i = 0; i < events; ++i) {
      *time += Below(20) == 0 ? Below(3000) : Below(15);
      switch (Below(4)) {
        case 0: {
          constexpr phases::Phase kPhases[] = {phases::Phase::kInit, phases::Phase::kCompile,
                                               phases::Phase::kRestore, phases::Phase::kCheckpoint,
                                               phases::Phase::kEval};
          int64_t end = phases::kStillOpen;
          if (Below(3) != 0) end = Ns(*time + Below(60) - 5);  // Some end before they begin.
          facts.phases.push_back({kPhases[Below(5)], Ns(*time), end});
          break;
        }
        default:
          if (Below(15) == 0) *step -= Below(20);
          *step += Below(4);
          rows.push_back(
              {Ns(*time - Below(3)), *step, Phase(), Phase(), Phase(), Phase(), Phase()});
      }
    }
    facts.last_ns = Ns(*time + Below(50));
    facts.ended = Below(2) == 0;
    facts.ended_well = facts.ended && Below(2) == 0;
    const auto by_time = [](const StepRow& a, const StepRow& b) { return a.time_ns < b.time_ns; };
    std::stable_sort(rows.begin(), rows.end(), by_time);
    std::stable_sort(facts.phases.begin(), facts.phases.end(),
                     [](const auto& a, const auto& b) { return a.start_ns < b.start_ns; });
    job->attempts.push_back(std::move(facts));
    job->rows.push_back(std::move(rows));
  }

  std::mt19937 random_;
};

}  // namespace tacho::server::goodput
