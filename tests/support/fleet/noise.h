// Noise that depends on where it is asked for, and on nothing else: two runs with one seed are the
// same, however their threads and clocks go.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace tacho::fleet {

// A number's well mixed image (splitmix64's finalizer, Steele et al. 2014).
inline uint64_t Mix(uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
  return value ^ (value >> 31);
}

// 0 (excluded) to 1.
inline double Uniform(uint64_t key) { return (static_cast<double>(Mix(key) >> 11) + 1) * 0x1p-53; }

// Normal, mean 0, deviation 1.
inline double Gauss(uint64_t key) {
  return std::sqrt(-2 * std::log(Uniform(key))) *
         std::cos(2 * std::numbers::pi * Uniform(Mix(key) ^ 1));
}

// The key of a place: which quantity, of whom, when.
inline uint64_t Key(uint64_t seed, uint64_t what, uint64_t who, uint64_t when) {
  return Mix(Mix(Mix(seed ^ Mix(what)) + who) + when);
}

}  // namespace tacho::fleet
