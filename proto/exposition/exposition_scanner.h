// Words of a line of an exposition format. Every Take…() moves past what it takes, and takes
// nothing if it is not there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/exposition/exposition.h"

namespace tacho {

bool IsMetricName(absl::string_view name);  // [a-zA-Z_:][a-zA-Z0-9_:]*
bool IsLabelName(absl::string_view name);   // [a-zA-Z_][a-zA-Z0-9_]*

size_t CodePoints(absl::string_view utf8);

// A decimal number, or NaN and infinities in any case with an optional sign. Neither hexadecimal
// nor with underscores.
std::optional<double> ParseExpositionNumber(absl::string_view word);

// Seconds, with any number of decimals, as ns. Finer digits are cut, and a value that is too large
// becomes the end of int64. nullopt for anything but a finite number.
std::optional<int64_t> ParseSecondsAsNs(absl::string_view word);

// One line. It must outlive the scanner.
class ExpositionScanner {
 public:
  // Lenient: spaces and tabs between words, a comma after the last label, quoted names.
  ExpositionScanner(absl::string_view line, bool lenient, const ExpositionLimits& limits)
      : rest_(line), lenient_(lenient), limits_(limits) {}

  absl::string_view rest() const { return rest_; }
  bool TakeByte(char byte);
  void SkipBlanks();             // Spaces and tabs, if lenient.
  absl::string_view TakeName();  // A metric's name; empty if there is none.
  absl::string_view TakeWord();  // Up to a blank or the end.
  // The text between braces, with them. A quoted text alone, first, is the name of the metric
  // and put into *name, which is otherwise left.
  absl::Status TakeLabels(ExpositionSample::Labels* labels, std::string* name);

 private:
  absl::Status TakeLabel(bool first, ExpositionSample::Labels* labels, std::string* name);
  absl::Status TakeQuoted(std::string* text);

  absl::string_view rest_;
  const bool lenient_;
  const ExpositionLimits& limits_;
};

// HELP's text without its escapes. False if it has one that is not allowed, which OpenMetrics calls
// text like any other.
std::string UnescapeHelp(absl::string_view text, bool quotes_too);

}  // namespace tacho
