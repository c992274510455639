#include "client/ctl/export/export_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "proto/base/json_text.h"
#include "proto/base/status_macros.h"

namespace tacho::ctl {
namespace {

constexpr size_t kFlushBytes = size_t{256} << 10;

absl::Status FromErrno(absl::string_view what, const std::string& path) {
  return absl::ErrnoToStatus(errno, absl::StrCat(what, " ", path));
}

}  // namespace

std::string LabelsAsJson(const v1::SeriesInfo& series) {
  std::string text = "{";
  for (const v1::Label& label : series.labels()) {
    absl::StrAppend(&text, text.size() > 1 ? "," : "", JsonString(label.name()), ":",
                    JsonString(label.value()));
  }
  return text + "}";
}

std::string PrometheusEscaped(const std::string& value) {
  return absl::StrReplaceAll(value, {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}});
}

std::string LabelsAsMatchers(const v1::SeriesInfo& series) {
  std::string text;
  for (const v1::Label& label : series.labels()) {
    absl::StrAppend(&text, text.empty() ? "" : ",", label.name(), "=\"",
                    PrometheusEscaped(label.value()), "\"");
  }
  return text;
}

std::string PartialName(const std::string& path) {
  std::filesystem::path target(path);
  if (!target.has_filename()) target = target.parent_path();
  const std::string name = absl::StrCat(".", target.filename().string(), ".", getpid(), ".partial");
  return (target.parent_path() / name).string();
}

absl::StatusOr<std::unique_ptr<OutputFile>> OutputFile::Create(const std::string& path) {
  std::unique_ptr<OutputFile> file(new OutputFile);
  file->path_ = path;
  file->partial_ = PartialName(path);
  file->fd_ = ::open(file->partial_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file->fd_ < 0) return FromErrno("cannot write", path);
  return file;
}

std::unique_ptr<OutputFile> OutputFile::To(std::ostream* out) {
  std::unique_ptr<OutputFile> file(new OutputFile);
  file->out_ = out;
  return file;
}

OutputFile::~OutputFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(partial_.c_str());
}

absl::Status OutputFile::Write(absl::string_view bytes) {
  if (out_ != nullptr) {
    out_->write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return out_->good() ? absl::OkStatus() : absl::CancelledError("nobody reads the output");
  }
  absl::StrAppend(&buffer_, bytes);
  return buffer_.size() < kFlushBytes ? absl::OkStatus() : Flush();
}

absl::Status OutputFile::Flush() {
  absl::string_view rest = buffer_;
  while (!rest.empty()) {
    const ssize_t written = ::write(fd_, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return FromErrno("cannot write", path_);
    rest.remove_prefix(static_cast<size_t>(written));
  }
  buffer_.clear();
  return absl::OkStatus();
}

absl::Status OutputFile::Commit() {
  if (out_ != nullptr) {
    out_->flush();
    return out_->good() ? absl::OkStatus() : absl::CancelledError("nobody reads the output");
  }
  TACHO_RETURN_IF_ERROR(Flush());
  if (::fsync(fd_) != 0) return FromErrno("cannot write", path_);
  if (::rename(partial_.c_str(), path_.c_str()) != 0) return FromErrno("cannot replace", path_);
  ::close(fd_);
  fd_ = -1;
  return absl::OkStatus();
}

}  // namespace tacho::ctl
