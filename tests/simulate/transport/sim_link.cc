// A link is a pair of queues between two timelines. Whatever fails it (a cut, a reset, silence)
// ends in Break() on the thread of the end that notices.
#include "tests/simulate/transport/sim_link.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/base/clock.h"

namespace tacho::simulate {
namespace {

// What gRPC and HTTP/2 put before a message.
constexpr uint64_t kFrameBytes = 14;
// TCP sends SYN again so long after the one before; gRPC gives an attempt up after 10 s.
constexpr std::array kConnectPauses = {absl::Seconds(1), absl::Seconds(2), absl::Seconds(4),
                                       absl::Seconds(3)};
// TCP's pauses between attempts to send again grow with the time that nothing passed, up to this.
constexpr absl::Duration kMostResendPause = absl::Seconds(10);

grpc::Status Unavailable(std::string text) {
  return {grpc::StatusCode::UNAVAILABLE, std::move(text)};
}

uint64_t SizeOf(const grpc::ByteBuffer& bytes) { return bytes.Length() + kFrameBytes; }

}  // namespace

SimLink::SimLink(NetworkState* network, std::string host, std::string address,
                 std::shared_ptr<Timeline> agent)
    : network_(network), host_(std::move(host)), address_(std::move(address)) {
  end(Side::kAgent).timeline = std::move(agent);
  parted_ = dark_ = network_->IsPartitioned(host_, address_);
}

void SimLink::At(Side side, absl::Time when, std::function<void()> step) {
  end(side).timeline->At(when, [self = shared_from_this(), step = std::move(step)] { step(); });
}

void SimLink::Connect(Done connected) {
  if (end(Side::kAgent).closed) return connected(false);
  connected_ = std::move(connected);
  Attempt(0);
}

void SimLink::Attempt(size_t attempt) {
  if (established_ || end(Side::kAgent).closed) return;
  if (attempt == kConnectPauses.size()) {
    return Break(Side::kAgent, Unavailable(absl::StrCat(address_, ": connection timed out")));
  }
  const absl::Time now = NetworkNow();
  At(Side::kAgent, now + kConnectPauses[attempt], [this, attempt] { Attempt(attempt + 1); });
  if (!dark_) At(Side::kAgent, now + network_->Latency(), [this] { Knock(); });
}

void SimLink::Knock() {
  if (dark_ || established_) return;
  const auto found = network_->doors.find(address_);
  const auto door = found == network_->doors.end() ? nullptr : found->second;
  At(Side::kAgent, NetworkNow() + network_->Latency(), [this, door] {
    if (!dark_ && !established_ && !end(Side::kAgent).closed) Establish(door);
  });
}

void SimLink::Establish(const std::shared_ptr<Door>& door) {
  if (door == nullptr || door->closed) {
    return Break(Side::kAgent, Unavailable(absl::StrCat(address_, ": connection refused")));
  }
  established_ = true;
  door_ = door;
  // The door outlives its timeline's users.
  end(Side::kServer).timeline = std::shared_ptr<Timeline>(door, &door->timeline);
  const absl::Time now = NetworkNow();
  for (End& each : ends_) each.heard = now;
  Send(Side::kServer, {.kind = Item::Kind::kOpen}, now);
  std::exchange(connected_, nullptr)(true);
}

void SimLink::Read(Side side, ReadDone done) {
  TACHO_CHECK(end(side).read == nullptr);
  end(side).read = std::move(done);
  GiveRead(side);
}

void SimLink::GiveRead(Side side) {
  End& here = end(side);
  if (here.read == nullptr) return;
  if (!here.arrived.empty()) {
    grpc::ByteBuffer bytes;
    bytes.Swap(&here.arrived.front());
    here.arrived.pop_front();
    ReturnRoom(Other(side), SizeOf(bytes), NetworkNow() + network_->Latency());
    std::exchange(here.read, nullptr)(&bytes, true);
  } else if (here.closed || here.read_closed) {
    std::exchange(here.read, nullptr)(nullptr, false);
  }
}

void SimLink::ReturnRoom(Side writer, uint64_t bytes, absl::Time when) {
  At(writer, when, [this, writer, bytes] {
    End& there = end(writer);
    if (dark_) {
      there.room_lost += bytes;
      return;
    }
    there.heard = NetworkNow();
    there.in_window -= std::min(bytes, there.in_window);
    Admit(writer);
  });
}

void SimLink::Write(Side side, grpc::ByteBuffer bytes, Done done) {
  End& here = end(side);
  TACHO_CHECK(here.written == nullptr && !here.finish.has_value());
  if (here.closed) return done(false);
  here.waiting = std::move(bytes);
  here.written = std::move(done);
  Admit(side);
}

void SimLink::Admit(Side from) {
  End& here = end(from);
  if (!here.waiting.has_value() || here.in_window >= network_->options.window_bytes) return;
  Item item{.kind = Item::Kind::kMessage};
  item.bytes.Swap(&*here.waiting);
  here.waiting.reset();
  const uint64_t size = SizeOf(item.bytes);
  const absl::Time start = std::max(NetworkNow(), here.wire_free);
  here.wire_free = start + network_->TimeOnWire(size);
  here.in_window += size;
  const uint64_t passing = cut_ ? size : network_->Pass(host_, address_, size);
  if (passing == size) {
    Send(Other(from), std::move(item), here.wire_free);
  } else {
    At(from, start + network_->TimeOnWire(passing), [this, from] { Cut(Other(from)); });
  }
  At(from, here.wire_free, [this, from] { NoteWritten(from); });
}

void SimLink::NoteWritten(Side from) {
  End& here = end(from);
  if (here.written != nullptr) std::exchange(here.written, nullptr)(true);
  if (here.finish.has_value()) Finish(*std::exchange(here.finish, std::nullopt));
}

void SimLink::HalfClose() {
  if (end(Side::kAgent).closed) return;
  TACHO_CHECK(end(Side::kAgent).written == nullptr);
  Send(Side::kServer, {.kind = Item::Kind::kHalfClose}, NetworkNow());
}

void SimLink::Finish(const grpc::Status& status) {
  End& here = end(Side::kServer);
  if (here.closed) return;
  if (here.written != nullptr) {
    here.finish = status;
    return;
  }
  Send(Side::kAgent, {.kind = Item::Kind::kStatus, .status = status}, NetworkNow());
  here.closed = true;
  here.arrived.clear();
  GiveRead(Side::kServer);
}

void SimLink::Cancel(const grpc::Status& status) {
  if (end(Side::kAgent).closed) return;
  if (established_) Send(Side::kServer, {.kind = Item::Kind::kReset}, NetworkNow());
  Break(Side::kAgent, status);
}

void SimLink::Detach(Side side) {
  End& here = end(side);
  here.on_end = nullptr;
  here.read = nullptr;
  here.written = nullptr;
  here.waiting.reset();
  if (side == Side::kAgent) connected_ = nullptr;
  if (here.closed) return;
  here.closed = true;
  if (established_) Send(Other(side), {.kind = Item::Kind::kReset}, NetworkNow());
}

void SimLink::Send(Side to, Item item, absl::Time passes) {
  if (cut_) return;
  End& there = end(to);
  if (dark_) {
    if (there.flying.empty()) {
      const auto& limits = to == Side::kServer ? network_->options.agent : network_->options.server;
      Watch(Other(to), NetworkNow() + limits.unanswered);
    }
  } else {
    item.arrives = std::max(there.last_arrival, passes + network_->Latency());
    there.last_arrival = item.arrives;
    At(to, item.arrives, [this, to] { Arrive(to); });
  }
  there.flying.push_back(std::move(item));
}

void SimLink::Arrive(Side side) {
  End& here = end(side);
  const absl::Time now = NetworkNow();
  while (!dark_ && !here.flying.empty() && here.flying.front().arrives <= now) {
    Item item = std::move(here.flying.front());
    here.flying.pop_front();
    here.heard = now;
    Take(side, std::move(item));
  }
}

void SimLink::Take(Side side, Item item) {
  End& here = end(side);
  switch (item.kind) {
    case Item::Kind::kOpen:
      if (here.closed) return;
      return door_->open(shared_from_this());
    case Item::Kind::kMessage:
      if (here.closed) return;
      here.arrived.push_back(std::move(item.bytes));
      return GiveRead(side);
    case Item::Kind::kHalfClose:
      here.read_closed = true;
      return GiveRead(side);
    case Item::Kind::kStatus:
      return Close(side, item.status);
    case Item::Kind::kReset:
      return Break(side, Unavailable("connection reset"));
  }
}

void SimLink::Close(Side side, const grpc::Status& status) {
  End& here = end(side);
  if (here.closed) return;
  here.closed = true;
  here.waiting.reset();
  here.finish.reset();
  // gRPC may say first that the stream is cancelled, or that an operation failed.
  const bool end_first = network_->Draw(1) == 1;
  if (end_first && here.on_end != nullptr) std::exchange(here.on_end, nullptr)(status);
  if (side == Side::kAgent && connected_ != nullptr) std::exchange(connected_, nullptr)(false);
  if (here.written != nullptr) std::exchange(here.written, nullptr)(false);
  GiveRead(side);
  if (here.on_end != nullptr) std::exchange(here.on_end, nullptr)(status);
}

void SimLink::Break(Side side, const grpc::Status& status) {
  End& here = end(side);
  if (here.closed) return;
  // What has arrived and was not read may be lost with the connection.
  if (network_->Draw(1) == 1) here.arrived.clear();
  Close(side, status);
}

void SimLink::Cut(std::optional<Side> whole) {
  if (cut_ || (end(Side::kAgent).closed && end(Side::kServer).closed)) return;
  if (!established_) return Break(Side::kAgent, Unavailable("connection reset"));
  ++network_->cuts;
  for (const Side side : {Side::kAgent, Side::kServer}) {
    std::deque<Item>& flying = end(side).flying;
    if (side != whole) {
      const uint64_t lost = network_->Draw(flying.size());
      flying.erase(flying.end() - static_cast<std::ptrdiff_t>(lost), flying.end());
    }
    Send(side, {.kind = Item::Kind::kReset}, NetworkNow());
  }
  cut_ = true;
}

void SimLink::MakeHalfOpen() {
  if (!established_) return;
  half_open_ = true;
  Look();
}

void SimLink::SetParted(bool parted) {
  parted_ = parted;
  Look();
}

void SimLink::Look() {
  const bool dark = half_open_ || parted_;
  if (dark == dark_) return;
  dark_ = dark;
  ++epoch_;
  if (dark_) {
    GoDark();
  } else {
    Heal();
  }
}

void SimLink::GoDark() {
  dark_since_ = NetworkNow();
  if (!established_) return;
  for (const Side side : {Side::kAgent, Side::kServer}) Watch(side, SilenceEnds(side, dark_since_));
}

absl::Time SimLink::SilenceEnds(Side side, absl::Time now) {
  const auto& limits = side == Side::kAgent ? network_->options.agent : network_->options.server;
  if (!end(Other(side)).flying.empty()) return now + limits.unanswered;
  const absl::Time heard = end(side).heard;
  return std::max(now, heard + absl::Floor(now - heard, limits.ping_every) + limits.silence);
}

void SimLink::Watch(Side side, absl::Time when) {
  At(side, when, [this, side, epoch = epoch_] {
    if (epoch != epoch_ || end(side).closed) return;
    Send(Other(side), {.kind = Item::Kind::kReset}, NetworkNow());
    Break(side, Unavailable("keepalive timeout: nothing comes from the other end"));
  });
}

void SimLink::Heal() {
  if (!established_) return;
  const absl::Time now = NetworkNow();
  const absl::Time resumes =
      now + network_->Draw(absl::ZeroDuration(), std::min(now - dark_since_, kMostResendPause));
  for (const Side side : {Side::kAgent, Side::kServer}) {
    End& here = end(side);
    here.last_arrival = resumes;
    for (Item& item : here.flying) {
      item.arrives = std::max(here.last_arrival, resumes + network_->Latency());
      here.last_arrival = item.arrives;
      At(side, item.arrives, [this, side] { Arrive(side); });
    }
    if (here.room_lost == 0) continue;
    ReturnRoom(side, std::exchange(here.room_lost, 0), resumes + network_->Latency());
  }
}

}  // namespace tacho::simulate
