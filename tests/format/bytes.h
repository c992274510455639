// A cursor over stored bytes, as "Integers and texts" of docs/storage_format.md has them. This
// directory reads a store from that page alone: it includes nothing of the project.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace format_page {

// What came to light while reading: everything that is not as the page says, and how often each of
// the forms that it describes was met.
struct Findings {
  std::vector<std::string> errors;
  std::map<std::string, uint64_t> met;
};

// Reading past the end, or Fail(), makes an error; from then on there are no bytes left, and every
// number is 0. Only the first error of a cursor is kept.
class Bytes {
 public:
  // `name` is what errors call it. Neither the data nor the findings are owned.
  Bytes(std::string name, std::string_view data, Findings* findings);

  bool ok() const { return ok_; }
  bool empty() const { return data_.empty(); }
  size_t size() const { return data_.size(); }
  void Fail(const std::string& why);
  void Met(const std::string& form) { ++findings_->met[form]; }
  // An error unless all has been read.
  void ExpectEnd();

  std::string_view Take(size_t size);
  std::string Rest() { return std::string(Take(data_.size())); }
  // The next bytes with a cursor of their own.
  Bytes Part(size_t size) { return {name_, Take(size), findings_}; }

  uint8_t Byte() { return static_cast<uint8_t>(Little(1)); }
  uint64_t Little(size_t bytes);
  uint64_t Big(size_t bytes);
  int64_t KeyTime();
  uint64_t Varint();
  int64_t Zigzag();
  std::string String();
  // A count of things that take at least a byte each: more than there are bytes is an error.
  uint64_t Count();

 private:
  std::string name_;
  std::string_view data_;
  Findings* findings_;
  bool ok_ = true;
};

// Numbers of several bits, each byte and each number beginning with the lowest bit.
class Bits {
 public:
  explicit Bits(Bytes* bytes) : bytes_(bytes) {}
  uint64_t Take(unsigned bits);

 private:
  Bytes* bytes_;
  uint8_t byte_ = 0;
  unsigned left_ = 0;  // Bits of byte_ that are not taken.
};

int64_t Unzigzag(uint64_t number);
uint32_t Crc32c(std::string_view data);

}  // namespace format_page
