// One line of the log as text.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace tacho::log {

enum class Format { kLogfmt, kJson };
enum class Level { kDebug, kInfo, kWarn, kError };

// "debug", "info", "warn", "error".
absl::string_view NameOf(Level level);
// The level of that name; nullopt if there is none.
std::optional<Level> LevelNamed(absl::string_view name);
// "json" or "logfmt"; anything else is kLogfmt.
Format FormatNamed(absl::string_view name);

// key=value. The key is a constant of ours in snake_case, the value may be anybody's; neither is
// copied: a field lives no longer than the statement it stands in.
struct Field {
  using Value = std::variant<absl::string_view, int64_t, uint64_t, double, bool>;

  Field(absl::string_view name, absl::string_view text) : key(name), value(text) {}
  Field(absl::string_view name, const char* text) : key(name), value(absl::string_view(text)) {}
  Field(absl::string_view name, const std::string& text)
      : key(name), value(absl::string_view(text)) {}
  Field(absl::string_view name, std::same_as<bool> auto yes) : key(name), value(yes) {}
  Field(absl::string_view name, double number) : key(name), value(number) {}
  template <std::integral T>
  requires(!std::same_as<T, bool>) Field(absl::string_view name, T number)
      : key(name), value(Widen(number)) {}

  absl::string_view key;
  Value value;

 private:
  template <std::integral T>
  static Value Widen(T number) {
    if constexpr (std::signed_integral<T>) return static_cast<int64_t>(number);
    return static_cast<uint64_t>(number);
  }
};

// Longer texts are cut, and end with how much is missing: "… (+1234 bytes)".
inline constexpr size_t kMaxMessageBytes = 4096;  // A file with many mistakes makes a long text.
inline constexpr size_t kMaxValueBytes = 512;

// With a line feed at its end and none before it. Bytes that are no UTF-8, control characters and
// what changes the direction of text are escaped, so that nothing but text reaches a terminal and
// nothing in a value looks like another field or line.
std::string FormatLine(Format format, absl::Time time, Level level, absl::string_view message,
                       std::span<const Field> fields);

}  // namespace tacho::log
