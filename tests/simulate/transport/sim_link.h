// One simulated connection with its one stream, between an agent and a collector.
//
// Each end is driven by the thread of its timeline: what arrives, what times out and what a
// completed write means happen there. A message passes in four steps:
//
//   Write() ── room in the window? ──▶ on the wire ── latency ──▶ arrived ──▶ Read()
//      ▲                                    │ a cut loses it         │ its room is free again,
//      └── done once it is on the wire      ▼ and done means nothing ▼ one latency later
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/status.h"
#include "tests/simulate/transport/network_state.h"

namespace tacho::simulate {

enum class Side { kAgent, kServer };

// All of it needs the network's mutex. Callbacks run under it: they only note what has happened.
class SimLink : public std::enable_shared_from_this<SimLink> {
 public:
  using Done = std::function<void(bool ok)>;
  // The bytes may be taken out; null if not ok.
  using ReadDone = std::function<void(grpc::ByteBuffer* bytes, bool ok)>;
  using OnEnd = std::function<void(const grpc::Status&)>;

  // Nothing is owned but the timeline.
  SimLink(NetworkState* network, std::string host, std::string address,
          std::shared_ptr<Timeline> agent);

  const std::string& host() const { return host_; }
  const std::string& address() const { return address_; }
  const std::shared_ptr<Door>& door() const { return door_; }  // Null: not connected.

  // The agent's: tries to reach the address, as TCP does.
  void Connect(Done connected);

  // `on_end` is called once: at the agent's end with the status of the stream, at the server's when
  // the stream is broken or cancelled.
  void SetOnEnd(Side side, OnEnd on_end) { end(side).on_end = std::move(on_end); }
  // One at a time each.
  void Read(Side side, ReadDone done);
  void Write(Side side, grpc::ByteBuffer bytes, Done done);
  // The agent's: no more will be written. Needs that no write is under way.
  void HalfClose();
  // The server's last word. It goes out behind a write that is under way.
  void Finish(const grpc::Status& status);
  // The agent's: ends the stream here at once, there a little later.
  void Cancel(const grpc::Status& status);
  // The end is gone: nothing of its is called any more.
  void Detach(Side side);

  // The connection is lost. Of what is on the way, only some arrives: all of it towards `whole`, if
  // that is given. Both ends notice soon.
  void Cut(std::optional<Side> whole = {});
  // This end fails now, as far as it has not ended.
  void Break(Side side, const grpc::Status& status);
  // For good: nothing passes, and neither end is told.
  void MakeHalfOpen();
  // Nothing passes while the two endpoints are parted. What is lost meanwhile is sent again.
  void SetParted(bool parted);

 private:
  struct Item {
    enum class Kind { kOpen, kMessage, kHalfClose, kStatus, kReset };
    Kind kind = Kind::kMessage;
    grpc::ByteBuffer bytes;
    grpc::Status status;
    absl::Time arrives = absl::InfiniteFuture();
  };
  struct End {
    std::shared_ptr<Timeline> timeline;
    OnEnd on_end;
    std::deque<Item> flying;               // To this end.
    std::deque<grpc::ByteBuffer> arrived;  // And not read.
    ReadDone read;
    std::optional<grpc::ByteBuffer> waiting;  // To be written, once there is room.
    Done written;
    std::optional<grpc::Status> finish;  // Behind what is being written.
    uint64_t in_window = 0;              // Bytes of its that the other end has not read.
    uint64_t room_lost = 0;              // That was made while nothing passed.
    absl::Time wire_free = absl::InfinitePast();
    absl::Time last_arrival = absl::InfinitePast();
    absl::Time heard = absl::InfinitePast();
    bool closed = false;
    bool read_closed = false;
  };
  static Side Other(Side side) { return side == Side::kAgent ? Side::kServer : Side::kAgent; }
  End& end(Side side) { return ends_[static_cast<size_t>(side)]; }

  // What happens at a moment on the thread of an end. The link lives until then.
  void At(Side side, absl::Time when, std::function<void()> step);
  void Attempt(size_t attempt);
  void Knock();
  void Establish(const std::shared_ptr<Door>& door);

  void Admit(Side from);
  void NoteWritten(Side from);
  void Send(Side to, Item item, absl::Time passes);
  void Arrive(Side side);
  void Take(Side side, Item item);
  void GiveRead(Side side);
  void ReturnRoom(Side writer, uint64_t bytes, absl::Time when);
  void Close(Side side, const grpc::Status& status);

  void Look();
  void GoDark();
  void Heal();
  absl::Time SilenceEnds(Side side, absl::Time now);
  // Gives the end up at that moment if it is still dark.
  void Watch(Side side, absl::Time when);

  NetworkState* const network_;
  const std::string host_;
  const std::string address_;
  std::shared_ptr<Door> door_;
  Done connected_;
  std::array<End, 2> ends_;
  bool established_ = false;
  bool cut_ = false;
  bool half_open_ = false;
  bool parted_ = false;
  bool dark_ = false;  // Nothing passes.
  absl::Time dark_since_;
  uint64_t epoch_ = 0;  // Of dark and bright times.
};

}  // namespace tacho::simulate
