// Replays recorded curves, as they are and with planted faults, through the detectors of curves,
// and a synthetic fleet through all detectors. Prints what was found and when, and what was found
// where nothing was planted.
//
// Usage: evaluate_conditions DIRECTORY [--half tune|report|all] [--trials N] [--seed N] [--list]
// [--scenarios-only | --profiles-only [--settings YAML] [--phases recorded|unrecorded]
// [--healthy-jobs N] [--healthy-hours H] [--points N]]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "proto/config/yaml_config.h"
#include "server/conditions/detectors/detectors.h"
#include "tacho/config/v1/conditions.pb.h"
#include "tests/conditions/planted.h"
#include "tests/conditions/profile_fleet.h"
#include "tests/conditions/recorded_job.h"
#include "tests/conditions/scenarios.h"
#include "tests/conditions/synthetic.h"

namespace tacho::conditions {
namespace {

using server::conditions::Detector;
using server::conditions::Finding;

// The one that the limits were tuned with.
constexpr uint64_t kSeed = 20'24;
// Moments at which a recorded job is looked at, as it is.
constexpr size_t kMoments = 300;

struct Flags {
  std::string directory;
  std::string half = "all";
  size_t trials = 5;  // For each fault in each curve.
  bool list = false;
  bool scenarios_only = false;
  bool profiles_only = false;
  std::string phases;    // Only jobs with "recorded" or "unrecorded" ones.
  std::string settings;  // The section `conditions`, for the fleet with profiles.
  uint64_t seed = kSeed;
  size_t healthy_jobs = 84;  // Of so many hours each: a job-week.
  double healthy_hours = 2;
  size_t points = 500;  // Of a series in the window.
};

// FNV-1a: which half a job is in depends on nothing but its name.
bool InTuningHalf(const std::string& name) {
  uint64_t hash = 14695981039346656037u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return (hash >> 17) % 2 == 0;
}

std::vector<Detector> Detectors() {
  config::v1::ConditionsCurves config;
  if (!config::ParseYaml("", "defaults", &config).ok()) abort();
  return server::conditions::DetectorsOf(config);
}

std::vector<Detector> AllDetectors() {
  config::v1::Conditions config;
  if (!config::ParseYaml("", "defaults", &config).ok()) abort();
  return server::conditions::AllDetectors(config);
}

struct Episode {
  std::string job;
  std::string condition;
  std::string message;
  size_t moments = 0;
};

// Findings this many moments apart, or less, belong to one episode.
constexpr size_t kGap = 3;

std::vector<Episode> EpisodesOf(const RecordedJob& job, const std::vector<Detector>& detectors,
                                std::map<std::string, size_t>* judged) {
  const std::vector<int64_t> times = job.Times();
  const size_t stride = std::max<size_t>(1, times.size() / kMoments);
  std::vector<Episode> episodes;
  std::map<std::string, size_t> open;       // Condition to its episode.
  std::map<std::string, size_t> last_seen;  // Moment.
  std::map<std::string, bool> was_judged;
  size_t moment = 0;
  for (size_t i = stride - 1; i < times.size(); i += stride, ++moment) {
    const server::conditions::JobWindow window = WindowAt(job, times[i]);
    for (const Detector& detector : detectors) {
      const Finding finding = detector.detect(window);
      was_judged[detector.name] = was_judged[detector.name] || finding.judged;
      if (!finding.present) continue;
      const auto at = open.find(detector.name);
      const bool same = at != open.end() && moment - last_seen[detector.name] <= kGap;
      if (!same) {
        open[detector.name] = episodes.size();
        episodes.push_back({job.name, detector.name, finding.reason + ": " + finding.message, 0});
      }
      last_seen[detector.name] = moment;
      ++episodes[open[detector.name]].moments;
    }
  }
  for (const auto& [name, yes] : was_judged) (*judged)[name] += yes ? 1 : 0;
  return episodes;
}

struct Score {
  size_t trials = 0;
  size_t before = 0;  // Left out: the condition was there already.
  size_t found = 0;
  size_t clear_trials = 0;  // Those with faults of at least kClear noises.
  size_t clear_found = 0;
  std::vector<double> values;  // Delay.
  std::vector<double> steps;
};

constexpr double kClear = 6;

double Quantile(std::vector<double> values, double share) {
  if (values.empty()) return NAN;
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
}

double Share(size_t part, size_t whole) {
  return whole == 0 ? NAN : static_cast<double>(part) / static_cast<double>(whole);
}

void Try(const PlantedJob& planted, const Detector& detector, size_t limit, Score* score) {
  if (detector.detect(WindowAt(planted.job, planted.at_ns - 1)).present) {
    ++score->before;
    return;
  }
  ++score->trials;
  const bool clear = planted.noises >= kClear;
  score->clear_trials += clear ? 1 : 0;
  const size_t n = planted.times_ns.size();
  const size_t last = limit == 0 ? n : std::min(n, limit);
  // Every value at first, then ever fewer: the delay is known to within 2 %.
  for (size_t i = 0; i < last; i += 1 + i / 50) {
    if (!detector.detect(WindowAt(planted.job, planted.times_ns[i])).present) continue;
    ++score->found;
    score->clear_found += clear ? 1 : 0;
    score->values.push_back(static_cast<double>(i + 1));
    score->steps.push_back(static_cast<double>(planted.steps[i] - planted.at_step));
    return;
  }
}

void PrintAsIs(const std::vector<RecordedJob>& jobs, const std::vector<Detector>& detectors,
               bool list) {
  std::map<std::string, size_t> judged;
  std::map<std::string, std::vector<Episode>> found;
  double thousands = 0;
  double hours = 0;
  for (const RecordedJob& job : jobs) {
    thousands += static_cast<double>(job.recorded_steps()) / 1000;
    hours += static_cast<double>(job.last_time_ns() - job.first_time_ns()) / 3.6e12;
    for (Episode& episode : EpisodesOf(job, detectors, &judged)) {
      found[episode.condition].push_back(std::move(episode));
    }
  }
  std::printf("\n## As recorded: %zu curves, %.1f thousand recorded steps, %.0f hours\n\n",
              jobs.size(), thousands, hours);
  std::printf(
      "| condition | curves judged | curves with it | episodes | per 1,000 recorded steps |\n");
  std::printf("|---|---|---|---|---|\n");
  for (const Detector& detector : detectors) {
    const std::vector<Episode>& episodes = found[detector.name];
    std::map<std::string, int> with;
    for (const Episode& episode : episodes) ++with[episode.job];
    std::printf("| `%s` | %zu | %zu | %zu | %.4f |\n", detector.name.c_str(), judged[detector.name],
                with.size(), episodes.size(), static_cast<double>(episodes.size()) / thousands);
  }
  for (const auto& [condition, episodes] : found) {
    for (const Episode& episode : episodes) {
      if (list) {
        std::printf("%s\t%s\t%zu\t%s\n", condition.c_str(), episode.job.c_str(), episode.moments,
                    episode.message.c_str());
      }
    }
  }
}

void PrintPlanted(const std::vector<RecordedJob>& jobs, const std::vector<Detector>& detectors,
                  size_t trials, uint64_t seed) {
  std::printf("\n## Planted faults\n\n");
  std::printf(
      "| condition | fault | trials | left out | found | recall | recall of clear ones | delay, "
      "values p50 / p90 "
      "| steps p50 / p90 |\n|---|---|---|---|---|---|---|---|---|\n");
  for (const Plant plant : kPlants) {
    Score score;
    const auto detector =
        std::find_if(detectors.begin(), detectors.end(),
                     [&](const Detector& each) { return each.name == ConditionOf(plant); });
    for (size_t k = 0; k < jobs.size(); ++k) {
      std::mt19937_64 random(seed + 1000 * k + static_cast<uint64_t>(plant));
      for (size_t i = 0; i < trials; ++i) {
        const auto planted = PlantInto(jobs[k], plant, &random);
        if (planted) Try(*planted, *detector, LimitOf(plant), &score);
      }
    }
    std::printf(
        "| `%s` | %s | %zu | %zu | %zu | %.2f | %.2f of %zu | %.0f / %.0f | %.0f / %.0f |\n",
        ConditionOf(plant), PlantName(plant), score.trials, score.before, score.found,
        Share(score.found, score.trials), Share(score.clear_found, score.clear_trials),
        score.clear_trials, Quantile(score.values, 0.5), Quantile(score.values, 0.9),
        Quantile(score.steps, 0.5), Quantile(score.steps, 0.9));
    std::fflush(stdout);
  }
}

void PrintSynthetic(const std::vector<Detector>& detectors, size_t trials) {
  const HealthyScore healthy = ScoreHealthy(detectors, {.trials = trials});
  std::printf("\n## Synthetic fleet: healthy for %.0f hours, looked at %zu times\n\n",
              healthy.hours, healthy.moments);
  std::printf("| condition | moments with it | false episodes an hour |\n|---|---|---|\n");
  for (size_t i = 0; i < detectors.size(); ++i) {
    std::printf("| `%s` | %zu | %.2f |\n", detectors[i].name.c_str(), healthy.present[i],
                static_cast<double>(healthy.episodes[i]) / healthy.hours);
  }
  std::printf("\n## Synthetic fleet: planted faults\n\n");
  std::printf(
      "| condition | fault | trials | recall | right culprit first | delay, s p50 / p90 "
      "| steps p50 / p90 |\n|---|---|---|---|---|---|---|\n");
  for (const SyntheticScore& score : ScoreFaults(detectors, {.trials = trials})) {
    std::printf("| `%s` | %s | %zu | %.2f | %zu of %zu | %.0f / %.0f | %.0f / %.0f |\n",
                score.condition, score.fault, score.trials, Share(score.found, score.trials),
                score.right_culprit, score.targeted == 0 ? 0 : score.found,
                Quantile(score.seconds, 0.5), Quantile(score.seconds, 0.9),
                Quantile(score.steps, 0.5), Quantile(score.steps, 0.9));
  }
}

// Labelled runs, with the detectors of all groups.
void PrintScenarios(uint64_t seed, bool list) {
  std::vector<testing::Scenario> scenarios = testing::ProgressScenarios(seed);
  for (testing::Scenario& scenario : testing::HardwareScenarios(seed)) {
    scenarios.push_back(std::move(scenario));
  }
  double hours = 0;
  const std::vector<Detector> detectors = AllDetectors();
  const auto scores = ScoreScenarios(detectors, scenarios, &hours);
  std::printf("\n## Labelled runs: %zu, %.1f hours\n\n", scenarios.size(), hours);
  std::printf(
      "| condition | runs with it | recall | precision | right culprit first "
      "| delay, s p50 / largest | false an hour |\n|---|---|---|---|---|---|---|\n");
  for (const Detector& detector : detectors) {
    const ScenarioScore& score = scores.at(detector.name);
    std::printf("| `%s` | %zu | %.2f | %.2f | %zu of %zu | %.0f / %.0f | %.2f |\n",
                detector.name.c_str(), score.trials, Share(score.found, score.trials),
                Share(score.found, score.found + score.false_runs), score.named, score.to_name,
                Quantile(score.seconds, 0.5), Quantile(score.seconds, 1),
                static_cast<double>(score.false_runs) / hours);
  }
  for (const auto& [condition, score] : scores) {
    for (const std::string& remark : score.remarks) {
      if (list) std::printf("%s\t%s\n", condition.c_str(), remark.c_str());
    }
  }
}

void PrintKinds(const ProfileScore& score) {
  KindScore all;
  const auto print = [](const std::string& name, const KindScore& one) {
    std::printf("| %s | %zu | %.2f | %zu of %zu | %.0f / %.0f |\n", name.c_str(), one.trials,
                Share(one.found, one.trials), one.named, one.to_name, Quantile(one.seconds, 0.5),
                Quantile(one.seconds, 0.9));
  };
  std::printf(
      "| fault | trials | recall | right culprit first | delay, s p50 / p90 "
      "|\n|---|---|---|---|---|"
      "\n");
  for (const auto& [name, one] : score.kinds) {
    print(name, one);
    all.trials += one.trials;
    all.found += one.found;
    all.to_name += one.to_name;
    all.named += one.named;
    all.seconds.insert(all.seconds.end(), one.seconds.begin(), one.seconds.end());
  }
  print("all", all);
  std::printf(
      "\nPrecision %.3f; %zu false alarms in %.0f job-hours, %.2f a job-week; healthy jobs were "
      "judged as fast for %.0f %% of the time.\n",
      Share(all.found, all.found + score.false_alarms), score.false_alarms, score.hours,
      static_cast<double>(score.false_alarms) / score.hours * 168, 100 * score.fast_share);
}

// Jobs that record their phases, and jobs that do not, as users see their conditions.
int PrintProfileFleet(const Flags& flags) {
  config::v1::Conditions config;
  const absl::Status read = config::ParseYaml(flags.settings, "--settings", &config);
  if (!read.ok()) {
    std::fprintf(stderr, "%s\n", std::string(read.message()).c_str());
    return 2;
  }
  const auto settings = server::conditions::ConditionSettings::Create(config);
  if (!settings.ok()) abort();
  for (const bool records : {true, false}) {
    if (flags.phases == (records ? "unrecorded" : "recorded")) continue;
    const ProfileScore score = ScoreProfiles(**settings, records,
                                             {.seed = flags.seed,
                                              .trials = flags.trials,
                                              .healthy_jobs = flags.healthy_jobs,
                                              .healthy_seconds = 3600 * flags.healthy_hours,
                                              .points = flags.points});
    std::printf("\n## Fleet of random jobs that %s their phases\n\n",
                records ? "record" : "do not record");
    PrintKinds(score);
    for (const std::string& remark : score.remarks) {
      if (flags.list) std::printf("%s\n", remark.c_str());
    }
    std::fflush(stdout);
  }
  return 0;
}

int Run(const Flags& flags) {
  if (flags.profiles_only) return PrintProfileFleet(flags);
  if (flags.scenarios_only) {
    PrintScenarios(flags.seed, flags.list);
    return 0;
  }
  auto jobs = LoadRecordedJobs(flags.directory);
  const std::vector<Detector> detectors = Detectors();
  if (!jobs.ok()) {
    std::printf("recorded curves are skipped: %s\n", std::string(jobs.status().message()).c_str());
    PrintSynthetic(detectors, flags.trials);
    PrintScenarios(flags.seed, flags.list);
    return PrintProfileFleet(flags);
  }
  if (flags.half != "all") {
    const bool tune = flags.half == "tune";
    jobs->erase(
        std::remove_if(jobs->begin(), jobs->end(),
                       [&](const RecordedJob& job) { return InTuningHalf(job.name) != tune; }),
        jobs->end());
  }
  PrintAsIs(*jobs, detectors, flags.list);
  PrintPlanted(*jobs, detectors, flags.trials, flags.seed);
  PrintSynthetic(detectors, flags.trials);
  PrintScenarios(flags.seed, flags.list);
  return PrintProfileFleet(flags);
}

}  // namespace
}  // namespace tacho::conditions

int main(int argc, char** argv) {
  tacho::conditions::Flags flags;
  for (int i = 1; i < argc; ++i) {
    const bool more = i + 1 < argc;
    if (std::strcmp(argv[i], "--half") == 0 && more) {
      flags.half = argv[++i];
    } else if (std::strcmp(argv[i], "--trials") == 0 && more) {
      flags.trials = static_cast<size_t>(std::atoi(argv[++i]));
    } else if (std::strcmp(argv[i], "--scenarios-only") == 0) {
      flags.scenarios_only = true;
    } else if (std::strcmp(argv[i], "--profiles-only") == 0) {
      flags.profiles_only = true;
    } else if (std::strcmp(argv[i], "--phases") == 0 && more) {
      flags.phases = argv[++i];
    } else if (std::strcmp(argv[i], "--settings") == 0 && more) {
      flags.settings = argv[++i];
    } else if (std::strcmp(argv[i], "--healthy-jobs") == 0 && more) {
      flags.healthy_jobs = static_cast<size_t>(std::atoi(argv[++i]));
    } else if (std::strcmp(argv[i], "--healthy-hours") == 0 && more) {
      flags.healthy_hours = std::atof(argv[++i]);
    } else if (std::strcmp(argv[i], "--points") == 0 && more) {
      flags.points = static_cast<size_t>(std::atoi(argv[++i]));
    } else if (std::strcmp(argv[i], "--seed") == 0 && more) {
      flags.seed = static_cast<uint64_t>(std::atoll(argv[++i]));
    } else if (std::strcmp(argv[i], "--list") == 0) {
      flags.list = true;
    } else {
      flags.directory = argv[i];
    }
  }
  return tacho::conditions::Run(flags);
}
