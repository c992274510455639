// A function that can be left in the middle and continued, so that thousands of interleavings of
// several processes run on one thread, each decided by a seed.
#pragma once

#include <boost/context/fiber.hpp>
#include <boost/context/pooled_fixedsize_stack.hpp>
#include <functional>
#include <memory>
#include <utility>

namespace tacho::cluster {

// Destroying one that has not ended unwinds its stack: that is how a process crashes.
class Fiber {
 public:
  using Stacks = boost::context::pooled_fixedsize_stack;

  Fiber(Stacks& stacks, std::function<void()> body)
      : inside_(std::allocator_arg, stacks,
                [this, body = std::move(body)](boost::context::fiber&& outside) {
                  outside_ = std::move(outside);
                  body();
                  ended_ = true;
                  return std::move(outside_);
                }) {}
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // From outside: goes on until Leave() or the end.
  void Run() { inside_ = std::move(inside_).resume(); }
  // From inside.
  void Leave() { outside_ = std::move(outside_).resume(); }
  bool ended() const { return ended_; }

 private:
  bool ended_ = false;
  boost::context::fiber outside_;
  boost::context::fiber inside_;
};

}  // namespace tacho::cluster
