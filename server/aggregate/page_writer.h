// The part of /metrics that is about jobs, within its bound.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/aggregate/aggregate_rule.h"
#include "server/aggregate/aggregator.h"
#include "server/aggregate/job_scrape.h"
#include "server/metrics/metric_table.h"

namespace tacho::server::aggregate {

// Shares out `total`, so that all together have no more than it: each gets as much as it
// wants, up to one share that is the same for all. In the order of `wanted`.
std::vector<size_t> FairShares(const std::vector<size_t>& wanted, size_t total);

// First writes the lines about jobs as a whole, by job name, until the bound is reached. The jobs
// share the rest of it, and each job's metrics are written by name until its share is used up.
// Lines that the caller has no right to see count all the same. One thread at a time.
class PageWriter {
 public:
  using Visible = absl::FunctionRef<bool(absl::string_view job)>;

  // All but `visible` must outlive this; the values of `jobs` are counted.
  PageWriter(const std::vector<std::unique_ptr<JobScrape>>& jobs, const AggregateRules& rules,
             const ScrapeOptions& options, Visible visible);

  void WriteJobs(std::string* page);
  // To be called for every cell of all jobs, by family: marks it as shown if it has a place on the
  // page. `job` is the place in `jobs`.
  void Take(size_t job, uint32_t cell);
  // Those that have, in the same order, once they are computed.
  void WriteCells(size_t threads, std::string* page) const;
  void WriteTotals(std::string* page) const;

 private:
  struct Job {
    JobScrape* scrape = nullptr;
    bool visible = false;
    bool listed = false;  // The lines about it as a whole are written.
    std::string labels;   // job="x"
    size_t left = 0;      // Lines that it may still have.
    size_t left_out = 0;
  };
  void WriteFamily(metrics::Metric metric, absl::FunctionRef<void(const Job&)> write,
                   std::string* page) const;
  // Some of those that are shown.
  void WritePiece(size_t begin, size_t end, std::string* page) const;
  void WriteRules(std::string* page) const;

  const AggregateRules& rules_;
  const ScrapeOptions options_;
  std::vector<Job> jobs_;
  std::vector<Job*> job_at_;  // By place; nullptr: it is not on the page.
  size_t left_out_ = 0;
  struct Shown {
    const JobScrape* job = nullptr;
    uint32_t cell = 0;
  };
  std::vector<Shown> shown_;
};

}  // namespace tacho::server::aggregate
