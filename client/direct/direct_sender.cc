// The thread that empties a DirectQueue into an upload. The upload keeps what is not durable, so
// a lost connection means connecting again and nothing else.
#include "client/direct/direct_sender.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "client/histogram_layout.h"
#include "proto/base/check.h"
#include "proto/base/timed_wait.h"

namespace tacho::client {
namespace {

// Rows that come within this time share a message, so that the collector need not sync for each.
constexpr absl::Duration kLinger = absl::Milliseconds(200);
// Bounds of the pause before a collector that is absent or refuses is tried again.
constexpr absl::Duration kMinPause = absl::Milliseconds(500);
constexpr absl::Duration kMaxPause = absl::Minutes(1);

constexpr ChannelSecurityNames kNames = {
    .tls = "DirectOptions::security.tls",
    .ca = "DirectOptions::security.ca",
    .certificate = "DirectOptions::security.certificate",
    .key = "DirectOptions::security.key",
    .server_name = "DirectOptions::security.server_name",
    .token_file = "DirectOptions::security.token_file",
    .allow_plaintext_token = "DirectOptions::security.allow_plaintext_token"};

double RandomShare() {
  absl::BitGen random;
  return absl::Uniform(random, 0.0, 1.0);
}

importer::UploadOptions UploadOptionsOf(const DirectSenderOptions& options) {
  importer::UploadOptions upload;
  upload.address = options.address;
  upload.job = options.source.job();
  upload.security = options.security;
  upload.security_names = kNames;
  upload.agent_id = options.agent_id;
  upload.generation = options.generation;
  upload.version = absl::StrCat("direct ", TACHO_VERSION);
  upload.patience = absl::InfiniteDuration();
  return upload;
}

v1::MetricType TypeOf(MetricType type) {
  return type == MetricType::kCounter ? v1::METRIC_TYPE_COUNTER : v1::METRIC_TYPE_GAUGE;
}

}  // namespace

DirectSender::DirectSender(DirectSenderOptions options, DirectQueue* queue)
    : options_(std::move(options)),
      queue_(queue),
      upload_(UploadOptionsOf(options_)),
      backoff_(kMinPause, kMaxPause, RandomShare),
      thread_([this] { Run(); }) {}

DirectSender::~DirectSender() {
  queue_->Close();
  stop_.Notify();
  upload_.Cancel();
  thread_.join();
}

bool DirectSender::WaitForAll(absl::Duration timeout) {
  WaitFor(done_, timeout);
  return all_durable_.HasBeenNotified();
}

void DirectSender::Run() {
  try {
    SendAll();
  } catch (...) {
    // Out of memory: the trainer goes on without its record.
    options_.say("nothing more is sent to the collector: out of memory");
    queue_->Close();
  }
  done_.Notify();
}

void DirectSender::SendAll() {
  bool going = true;
  for (bool closed = false; going && !closed;) {
    DirectWork work = queue_->Take(kLinger);
    for (DirectMetric& metric : work.metrics) metrics_.push_back(std::move(metric));
    for (DirectHistogram& histogram : work.histograms) histograms_.push_back(std::move(histogram));
    going = SendAttributes(work.attributes) && SendLoss(work.lost_rows, work.lost_events) &&
            (!work.item.has_value() || SendItem(*work.item));
    closed = work.closed;
  }
  while (going) {
    const absl::Status status = upload_.Finish();
    NoteProgress();
    if (status.ok()) return all_durable_.Notify();
    connected_ = false;
    going = Connect(status);
  }
}

bool DirectSender::Connect(absl::Status why) {
  while (!connected_) {
    if (!why.ok()) {
      Say(why);
      if (WaitFor(stop_, backoff_.Next())) return false;
    }
    if (stop_.HasBeenNotified()) return false;
    why = upload_.Connect();
    connected_ = why.ok();
  }
  return true;
}

void DirectSender::NoteProgress() {
  if (std::exchange(delivered_, upload_.delivered()) == upload_.delivered()) return;
  backoff_.Reset();
  if (std::exchange(said_, absl::StatusCode::kOk) != absl::StatusCode::kOk) {
    options_.say("the collector takes the record again");
  }
}

void DirectSender::Say(const absl::Status& status) {
  if (absl::IsCancelled(status) || std::exchange(said_, status.code()) == status.code()) return;
  options_.say(absl::StrCat("the collector at ", options_.address,
                            " does not take the record, which waits for it: ", status.message()));
}

bool DirectSender::Deliver(const v1::Layout* layout, v1::ClientMessage message) {
  if (!Connect(absl::OkStatus())) return false;
  const absl::Status status = upload_.Send(sequence_, layout, std::move(message));
  NoteProgress();
  if (status.ok()) return true;
  // The upload has the message, and sends it with all else that is not durable.
  connected_ = false;
  return Connect(status);
}

bool DirectSender::SendAttributes(const std::map<std::string, std::string>& values) {
  // Half of what one message may have.
  constexpr int kMaxKeys = 128;
  for (auto at = values.begin(); at != values.end();) {
    v1::ClientMessage message;
    v1::Attributes& attributes = *message.mutable_attributes();
    attributes.set_sequence(++sequence_);
    attributes.set_job(options_.source.job());
    attributes.set_attempt(options_.source.attempt());
    for (int i = 0; i < kMaxKeys && at != values.end(); ++i, ++at) {
      (*attributes.mutable_values())[at->first] = at->second;
    }
    if (!Deliver(nullptr, std::move(message))) return false;
  }
  return true;
}

bool DirectSender::SendLoss(uint64_t rows, uint64_t events) {
  if (rows == 0 && events == 0) return true;
  DirectEvent event;
  event.time_unix_ns = std::max<int64_t>(options_.now_unix_ns(), 0);
  event.kind = "rows_lost";
  event.message = absl::StrCat(rows, " rows and ", events,
                               " events were dropped while they waited for the collector");
  event.fields = {{"rows", absl::StrCat(rows)}, {"events", absl::StrCat(events)}};
  return Send(event);
}

bool DirectSender::SendItem(const DirectItem& item) {
  return std::visit([this](const auto& content) { return Send(content); }, item);
}

bool DirectSender::Send(const DirectRows& rows) {
  v1::ClientMessage message;
  v1::Batch& batch = *message.mutable_batch();
  batch.set_sequence(++sequence_);
  batch.mutable_times_unix_ns()->Add(rows.times_unix_ns.begin(), rows.times_unix_ns.end());
  batch.mutable_steps()->Add(rows.steps.begin(), rows.steps.end());
  batch.mutable_values()->Add(rows.values.begin(), rows.values.end());
  return Deliver(RowLayout(rows.metric_count, rows.has_steps), std::move(message));
}

bool DirectSender::Send(const DirectHistogramState& state) {
  v1::ClientMessage message;
  v1::Batch& batch = *message.mutable_batch();
  batch.set_sequence(++sequence_);
  batch.add_times_unix_ns(state.time_unix_ns);
  if (state.step.has_value()) batch.add_steps(*state.step);
  const std::vector<double> values = HistogramValues(state.counts, state.sum);
  batch.mutable_values()->Add(values.begin(), values.end());
  return Deliver(HistogramLayout(state.histogram, state.step.has_value()), std::move(message));
}

bool DirectSender::Send(const DirectEvent& event) {
  v1::ClientMessage message;
  v1::Event& out = *message.mutable_event();
  out.set_sequence(++sequence_);
  *out.mutable_source() = options_.source;
  out.set_time_unix_ns(event.time_unix_ns);
  if (event.step.has_value()) out.set_step(*event.step);
  out.set_kind(event.kind);
  out.set_message(event.message);
  for (const auto& [name, value] : event.fields) (*out.mutable_fields())[name] = value;
  return Deliver(nullptr, std::move(message));
}

v1::Layout DirectSender::EmptyLayout(bool has_steps) const {
  v1::Layout layout;
  *layout.mutable_source() = options_.source;
  layout.set_has_steps(has_steps);
  return layout;
}

const v1::Layout* DirectSender::RowLayout(uint32_t metric_count, bool has_steps) {
  std::unique_ptr<v1::Layout>& layout = row_layouts_[{metric_count, has_steps}];
  if (layout != nullptr) return layout.get();
  TACHO_CHECK(metric_count <= metrics_.size());
  layout = std::make_unique<v1::Layout>(EmptyLayout(has_steps));
  for (uint32_t i = 0; i < metric_count; ++i) {
    v1::Metric* metric = layout->add_series()->mutable_metric();
    metric->set_name(metrics_[i].name);
    metric->set_type(TypeOf(metrics_[i].type));
    metric->set_unit(metrics_[i].unit);
    metric->set_help(metrics_[i].help);
  }
  return layout.get();
}

const v1::Layout* DirectSender::HistogramLayout(uint32_t histogram, bool has_steps) {
  std::unique_ptr<v1::Layout>& layout = histogram_layouts_[{histogram, has_steps}];
  if (layout != nullptr) return layout.get();
  layout = std::make_unique<v1::Layout>(EmptyLayout(has_steps));
  TACHO_CHECK(histogram < histograms_.size());
  const DirectHistogram& of = histograms_[histogram];
  AddHistogramSeries(of.name, of.unit, of.help, of.bounds, layout.get());
  return layout.get();
}

}  // namespace tacho::client
