// How a handler answers a request after it has returned, at once or piece by piece.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "server/http/http_message.h"

namespace tacho::server::http {

// The answer to one request. It ends with Answer() or Finish(); if the last reference goes without
// either, the client gets 500, or a cut body if the head is out. Calls from any thread, of which
// one at a time; none of them waits. Calls after the client has gone do nothing.
class Responder {
 public:
  // A writer stops when more bytes than this wait for the client.
  static constexpr size_t kHighWater = size_t{512} << 10;

  virtual ~Responder() = default;

  // The whole answer.
  virtual void Answer(HttpResponse response) = 0;

  // The head of an answer whose length is not known; `head.body` is its first piece. The body goes
  // out in chunks (RFC 9112, 7.1).
  virtual void Begin(HttpResponse head) = 0;
  virtual void Write(std::string bytes) = 0;
  virtual void Finish() = 0;

  // Bytes that wait for the client. Beyond kHighWater, call OnRoom() before more is written.
  virtual size_t unsent() const = 0;
  // Calls `room` once, from any thread and possibly before this returns: when half of kHighWater or
  // less waits, or the client has gone.
  virtual void OnRoom(std::function<void()> room) = 0;
  // Calls `gone` once, from any thread and possibly before this returns, if the client goes before
  // the answer has ended. A client that ends what it sends counts as gone. Never calls it after
  // Answer() or Finish(). `room` and `gone` must return soon: they may be called on the thread that
  // has the sockets.
  virtual void OnGone(std::function<void()> gone) = 0;
};

using ResponderPtr = std::shared_ptr<Responder>;

}  // namespace tacho::server::http
