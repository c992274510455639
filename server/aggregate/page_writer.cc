// Chooses the lines that fit on the page and writes them, family by family as the format demands.
// Each job gets a fair share of the limit, so that one job with many series pushes out no other.
#include "server/aggregate/page_writer.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "server/aggregate/page_lines.h"
#include "server/aggregate/parallel.h"

namespace tacho::server::aggregate {
namespace {

size_t JobLines(const JobScrape& job) { return job.last_step_max.has_value() ? 10 : 8; }

}  // namespace

std::vector<size_t> FairShares(const std::vector<size_t>& wanted, size_t total) {
  std::vector<size_t> by_want(wanted.size());
  std::iota(by_want.begin(), by_want.end(), 0);
  std::sort(by_want.begin(), by_want.end(),
            [&](size_t a, size_t b) { return wanted[a] < wanted[b]; });
  std::vector<size_t> shares(wanted.size());
  size_t others = wanted.size();
  for (const size_t i : by_want) {
    shares[i] = std::min(wanted[i], total / others);
    total -= shares[i];
    --others;
  }
  return shares;
}

PageWriter::PageWriter(const std::vector<std::unique_ptr<JobScrape>>& jobs,
                       const AggregateRules& rules, const ScrapeOptions& options, Visible visible)
    : rules_(rules), options_(options) {
  size_t left = options.max_series;
  std::vector<size_t> wanted;
  jobs_.reserve(jobs.size());
  for (const auto& scrape : jobs) {
    scrape->shown.assign(scrape->counts.size(), 0);
    job_at_.push_back(nullptr);
    if (!scrape->listed) continue;
    Job& job = jobs_.emplace_back();
    job.scrape = scrape.get();
    job.visible = visible(scrape->state->name);
    job.labels = absl::StrCat("job=\"", EscapeLabelValue(scrape->state->name), "\"");
    job.listed = JobLines(*scrape) <= left;
    if (job.listed) {
      left -= JobLines(*scrape);
    } else {
      left_out_ += JobLines(*scrape);
    }
    job_at_.back() = &job;
    size_t lines = 0;
    for (size_t cell = 0; cell < scrape->counts.size(); ++cell) lines += LinesOf(*scrape, cell);
    wanted.push_back(lines);
  }
  const std::vector<size_t> shares = FairShares(wanted, left);
  for (size_t i = 0; i < jobs_.size(); ++i) jobs_[i].left = shares[i];
}

void PageWriter::WriteFamily(metrics::Metric metric, absl::FunctionRef<void(const Job&)> write,
                             std::string* page) const {
  const size_t begin = page->size();
  AppendHead(metric, page);
  const size_t head_end = page->size();
  for (const Job& job : jobs_) {
    if (job.visible) write(job);
  }
  if (page->size() == head_end) page->resize(begin);
}

void PageWriter::WriteJobs(std::string* page) {
  const auto family = [&](metrics::Metric metric, auto value) {
    WriteFamily(
        metric,
        [&](const Job& job) {
          if (!job.listed) return;
          AppendLine(metric.info().name, job.labels, static_cast<double>(value(*job.scrape)), page);
        },
        page);
  };
  family("tacho_job_attempt", [](const JobScrape& job) { return job.attempt; });
  family("tacho_job_hosts", [](const JobScrape& job) { return job.state->present.hosts.size(); });
  family("tacho_job_last_seen_timestamp_seconds",
         [](const JobScrape& job) { return static_cast<double>(job.last_time_ns) / 1e9; });
  constexpr char last_step[] = "tacho_job_last_step";
  WriteFamily(
      last_step,
      [&](const Job& job) {
        if (!job.listed || !job.scrape->last_step_max) return;
        AppendLine(last_step, absl::StrCat(job.labels, ",stat=\"max\""),
                   static_cast<double>(*job.scrape->last_step_max), page);
        AppendLine(last_step, absl::StrCat(job.labels, ",stat=\"min\""),
                   static_cast<double>(*job.scrape->last_step_min), page);
      },
      page);
  family("tacho_job_series", [](const JobScrape& job) { return job.series; });
  family("tacho_job_series_left_total",
         [](const JobScrape& job) { return job.state->series_left; });
  family("tacho_job_silent_tasks", [](const JobScrape& job) { return job.silent_tasks; });
  family("tacho_job_tasks", [](const JobScrape& job) { return job.state->present.tasks.size(); });
  family("tacho_job_tasks_left_total", [](const JobScrape& job) { return job.state->tasks_left; });
}

void PageWriter::Take(size_t place, uint32_t cell) {
  Job* const job = job_at_[place];
  const size_t lines = job == nullptr ? 0 : LinesOf(*job->scrape, cell);
  if (lines == 0) return;
  if (lines > job->left) {
    job->left_out += lines;
    left_out_ += lines;
    return;
  }
  job->left -= lines;
  if (!job->visible) return;
  job->scrape->shown[cell] = 1;
  shown_.push_back({job->scrape, cell});
}

void PageWriter::WritePiece(size_t begin, size_t end, std::string* page) const {
  const auto family_of = [this](size_t i) {
    return shown_[i].job->state->cells[shown_[i].cell].family.get();
  };
  for (size_t i = begin; i < end; ++i) {
    const CellFamily* const family = family_of(i);
    if (i == 0 || family != family_of(i - 1)) {
      AppendHead(family->name, family->type, family->help, page);
    }
    AppendCell(*shown_[i].job, options_.now, shown_[i].cell, page);
  }
}

void PageWriter::WriteCells(size_t threads, std::string* page) const {
  if (threads == 1) return WritePiece(0, shown_.size(), page);
  // The first piece needs no copy.
  std::vector<std::string> others(threads - 1);
  const auto piece = [&](size_t i) { return shown_.size() * i / threads; };
  ParallelFor(threads, threads, [&](size_t i) {
    WritePiece(piece(i), piece(i + 1), i == 0 ? page : &others[i - 1]);
  });
  for (const std::string& written : others) page->append(written);
}

void PageWriter::WriteRules(std::string* page) const {
  std::vector<uint64_t> groups(rules_.rules.size()), without_group(groups), conflicts(groups);
  for (const Job& job : jobs_) {
    for (size_t i = 0; i < job.scrape->counts.size(); ++i) {
      const CellBrief& cell = job.scrape->state->briefs[i];
      const uint32_t values = job.scrape->counts[i];
      groups[cell.rule] += values > 0 && cell.counter == kNoCell;
      if (cell.conflicts) conflicts[cell.rule] += values;
    }
    const auto add = [&](const ColumnTargets& targets) {
      without_group[targets.rule] += targets.without_group;
      conflicts[targets.rule] += targets.conflicts;
    };
    for (size_t i = 0; i < job.scrape->plans.size(); ++i) {
      if (job.scrape->rows[i].values.empty()) continue;
      for (const ColumnTargets& targets : job.scrape->plans[i]->own) add(targets);
      for (const ColumnTargets& targets : job.scrape->plans[i]->bound) add(targets);
    }
  }
  const auto family = [&](metrics::Metric metric, const std::vector<uint64_t>& values) {
    AppendHead(metric, page);
    for (size_t i = 0; i < values.size(); ++i) {
      AppendLine(metric.info().name,
                 absl::StrCat("rule=\"", EscapeLabelValue(rules_.rules[i].name), "\""),
                 static_cast<double>(values[i]), page);
    }
  };
  if (rules_.rules.empty()) return;
  family("tacho_aggregate_groups", groups);
  family("tacho_aggregate_series_in_conflict", conflicts);
  family("tacho_aggregate_series_without_group", without_group);
}

void PageWriter::WriteTotals(std::string* page) const {
  WriteRules(page);
  constexpr char left_out[] = "tacho_aggregate_series_left_out";
  AppendHead(left_out, page);
  AppendLine(left_out, "", static_cast<double>(left_out_), page);
  constexpr char of_job[] = "tacho_job_aggregates_left_out";
  WriteFamily(
      of_job,
      [&](const Job& job) {
        if (job.left_out == 0 || !job.listed) return;
        AppendLine(of_job, job.labels, static_cast<double>(job.left_out), page);
      },
      page);
}

}  // namespace tacho::server::aggregate
