// Windows of jobs out of curves that a test writes down.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "server/conditions/window/signal_names.h"
#include "server/conditions/window/window.h"

namespace tacho::server::conditions {

inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kInf = std::numeric_limits<double>::infinity();

// f(0), f(1), …
inline std::vector<double> Curved(size_t count, const std::function<double(double)>& f) {
  std::vector<double> values;
  for (size_t i = 0; i < count; ++i) values.push_back(f(static_cast<double>(i)));
  return values;
}

// The same with normal noise of a standard deviation.
inline std::vector<double> Noisy(std::vector<double> values, double deviation, uint64_t seed = 1) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> noise(0, deviation);
  for (double& value : values) value += noise(random);
  return values;
}

// As losses of language models go: 3 + 8 / sqrt(1 + step), with noise.
inline std::vector<double> LanguageLoss(size_t count, double noise = 0.03, uint64_t seed = 1) {
  return Noisy(Curved(count, [](double i) { return 3 + 8 / std::sqrt(1 + i); }), noise, seed);
}

// One value at each step 0, `every`, 2 `every`, … a second apart.
inline Track TrackOf(const std::string& metric, const std::vector<double>& values,
                     int64_t every = 1) {
  Track track{.metric = metric, .points = {}};
  for (size_t i = 0; i < values.size(); ++i) {
    const auto step = static_cast<int64_t>(i) * every;
    track.points.push_back({.time_ns = step * 1'000'000'000, .step = step, .value = values[i]});
  }
  return track;
}

class WindowOf {
 public:
  WindowOf& Add(uint32_t task, Signal signal, const std::vector<double>& values,
                int64_t every = 1) {
    return AddTrack(task, signal, TrackOf(std::string(SignalName(signal)), values, every));
  }
  WindowOf& AddTrack(uint32_t task, Signal signal, Track track) {
    while (window_.tasks.size() <= task) {
      const auto number = static_cast<uint32_t>(window_.tasks.size());
      window_.tasks.push_back({.task = number, .host = "h" + std::to_string(number)});
    }
    window_.tasks[task].tracks[signal].push_back(std::move(track));
    return *this;
  }
  WindowOf& Attribute(const std::string& key, const std::string& value) {
    window_.attributes[key] = value;
    return *this;
  }
  // The newest row of a task, and the time.
  WindowOf& Reported(uint32_t task, int64_t step) {
    window_.tasks[task].last_step = step;
    return *this;
  }
  WindowOf& Now(int64_t second) {
    window_.now_ns = second * 1'000'000'000;
    return *this;
  }
  // NOLINTNEXTLINE(google-explicit-constructor): what it is for.
  operator const JobWindow&() const { return window_; }

 private:
  JobWindow window_;
};

}  // namespace tacho::server::conditions
