// What the collector asks of the agent over its stream, and how the answer gets back. The sender
// only carries both: agent/requests does the work.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tacho/v1/agent_requests.pb.h"

namespace tacho::agent {

// Thread-safe. No call blocks.
class RequestTaker {
 public:
  virtual ~RequestTaker() = default;

  // The kinds of AgentRequest that are answered, for Hello.
  virtual std::vector<std::string> Kinds() const = 0;
  // Works on a request, on a thread of its own. While it does, further ones are refused by a report
  // that says so.
  virtual void Take(const v1::AgentRequest& request) = 0;
  // The next part to send on the stream on which the request came; nullopt if there is none yet.
  virtual std::optional<v1::AgentReport> NextReport() = 0;
  // The stream ended: nobody waits for the parts that are left, nor for those to come.
  virtual void StreamEnded() = 0;
  // `ready` is called, on any thread, whenever NextReport() may have something. Null: by nobody.
  virtual void SetListener(std::function<void()> ready) = 0;
};

}  // namespace tacho::agent
