// A v1.ClientMessage as it lies in the spool: serialized, and read no further than sending needs.
//
// A Batch is nearly all of what an agent sends, and its columns are the same bytes on the disk and
// on the wire. Only the number of its layout differs: the spool has one number for a layout, each
// stream gives it another. So a Batch is never parsed; its bytes go out around a new number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "tacho/v1/ingest.pb.h"

namespace tacho::agent {

class SpooledMessage {
 public:
  // nullopt: the bytes are no v1.ClientMessage.
  static std::optional<SpooledMessage> Of(std::string bytes);

  const std::string& bytes() const { return bytes_; }
  v1::ClientMessage::MessageCase kind() const { return kind_; }
  bool is_batch() const { return kind_ == v1::ClientMessage::kBatch; }
  // The Batch's layout; 0 for other messages. The spool numbers layouts from 1.
  uint32_t layout() const { return layout_; }
  uint64_t rows() const { return rows_; }

  // Parses the whole message.
  v1::ClientMessage Parsed() const;

  // The bytes of the same Batch with another layout: `head`, then `tail`, which points into
  // bytes(). Needs is_batch().
  struct Parts {
    std::string head;
    absl::string_view tail;
  };
  Parts WithLayout(uint32_t layout) const;

 private:
  explicit SpooledMessage(std::string bytes) : bytes_(std::move(bytes)) {}

  // Finds the parts of a Batch as protobuf serializes it; false if the bytes are anything else.
  bool ScanBatch();

  std::string bytes_;
  v1::ClientMessage::MessageCase kind_ = v1::ClientMessage::MESSAGE_NOT_SET;
  uint32_t layout_ = 0;
  uint64_t rows_ = 0;
  // In bytes_: where the fields of the Batch begin, and the field of its layout.
  size_t fields_begin_ = 0;
  size_t layout_begin_ = 0;
  size_t layout_end_ = 0;
};

}  // namespace tacho::agent
