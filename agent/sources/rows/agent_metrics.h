// The agent's metrics about itself: every tacho_agent_* metric, with its type, unit and help.
// docs/notation.md lists the same; a test compares the two.
#pragma once

#include "agent/sources/rows/sample.h"

namespace tacho::agent::own {

// --- The agent.
inline constexpr Metric kInfo = {"tacho_agent_info", kGaugeType, "1",
                                 "1, with the agent's id and version as labels"};
inline constexpr Metric kCpu = {"tacho_agent_cpu_seconds_total", kCounterType, "s",
                                "CPU time that the agent has used"};
inline constexpr Metric kResident = {"tacho_agent_resident_memory_bytes", kGaugeType, "By",
                                     "Memory of the agent that is in RAM"};

// --- Its spool.
inline constexpr Metric kSpoolMessages = {"tacho_agent_spool_messages", kGaugeType, "messages",
                                          "Messages that wait in the spool for the collector"};
inline constexpr Metric kSpoolBytes = {"tacho_agent_spool_bytes", kGaugeType, "By",
                                       "Size of the messages that wait in the spool"};
inline constexpr Metric kRows = {"tacho_agent_rows_total", kCounterType, "rows",
                                 "Rows that sources gave to the spool"};
inline constexpr Metric kLostRows = {
    "tacho_agent_lost_rows_total", kCounterType, "rows",
    "Rows that the spool gave up: it was full or damaged, or the collector refused them"};
inline constexpr Metric kSpoolLostRows = {
    "tacho_agent_spool_lost_rows_total", kCounterType, "rows",
    "Rows that never reach the collector: past spool.max_bytes or spool.max_age, refused by the "
    "agent's disk or by the collector, or damaged",
    "reason"};
inline constexpr Metric kSpoolLostMessages = {
    "tacho_agent_spool_lost_messages_total", kCounterType, "messages",
    "The same in messages: batches, events and attributes", "reason"};

// --- What the collector did not take of it.
inline constexpr Metric kRefusedSamples = {
    "tacho_agent_refused_samples_total", kCounterType, "samples",
    "Samples that the collector refused while it took their messages", "reason"};

// --- What the collector has lost of it.
inline constexpr Metric kMissingMessages = {
    "tacho_agent_acknowledged_missing_messages_total", kCounterType, "messages",
    "Messages that a collector had acknowledged and no longer had when the agent connected again: "
    "the spool still held them (again), or not (gone)",
    "fate"};

// --- Its clock, as the collector measures it.
inline constexpr Metric kClockOffset = {
    "tacho_agent_clock_offset_seconds", kGaugeType, "s",
    "How far the host's clock is ahead of the collector's; negative: behind"};
inline constexpr Metric kClockUncertainty = {
    "tacho_agent_clock_uncertainty_seconds", kGaugeType, "s",
    "By how much tacho_agent_clock_offset_seconds may be wrong at most"};

// --- Each of its sources.
inline constexpr Metric kSourceUp = {"tacho_agent_source_up", kGaugeType, "1",
                                     "Whether the source gives what it should: 1 or 0", "source"};
inline constexpr Metric kSourceFailing = {
    "tacho_agent_source_failing", kGaugeType, "1",
    "1 while the source fails, with the code of its reason; the text is in the event source_failed",
    "source"};
inline constexpr Metric kSourceFailingSeconds = {
    "tacho_agent_source_failing_seconds", kGaugeType, "s",
    "For how long the source has been failing; only while it does", "source"};
inline constexpr Metric kSourceRetrySeconds = {
    "tacho_agent_source_retry_seconds", kGaugeType, "s",
    "How soon the source is tried again; only while it fails. 0: it is being tried", "source"};
inline constexpr Metric kSourcePolls = {"tacho_agent_source_polls_total", kCounterType, "polls",
                                        "Times that the source was polled", "source"};
inline constexpr Metric kSourceFailures = {
    "tacho_agent_source_failures_total", kCounterType, "polls",
    "Polls after which the source said that it fails", "source"};
inline constexpr Metric kSourcePollSeconds = {
    "tacho_agent_source_poll_seconds_total", kCounterType, "s",
    "Time that polls of the source took, waiting included", "source"};
inline constexpr Metric kSourceInPollSeconds = {
    "tacho_agent_source_in_poll_seconds", kGaugeType, "s",
    "How long the poll that has not returned yet takes; 0: there is none", "source"};
inline constexpr Metric kSourceLostRows = {
    "tacho_agent_source_lost_rows_total", kCounterType, "rows",
    "Rows that were overwritten or damaged before the source read them", "source"};

// --- What it reads from endpoints and text files; all have the label source.
inline constexpr Metric kScrapeSamples = {"tacho_agent_scrape_samples", kGaugeType, "samples",
                                          "Samples filed of the last reading"};
inline constexpr Metric kScrapeLeftOut = {"tacho_agent_scrape_left_out_samples", kGaugeType,
                                          "samples",
                                          "Samples left out of the last reading, by reason"};
inline constexpr Metric kScrapeDuration = {"tacho_agent_scrape_duration_seconds", kGaugeType, "s",
                                           "How long the last reading took"};
inline constexpr Metric kScrapeBody = {"tacho_agent_scrape_body_bytes", kGaugeType, "By",
                                       "Length of the last answer"};
inline constexpr Metric kScrapeLapses = {
    "tacho_agent_scrape_lapses", kGaugeType, "1",
    "Broken rules of the format that were let pass in the last reading: a second HELP, a last line "
    "without an end"};
inline constexpr Metric kTextfilesRead = {"tacho_agent_textfiles_read", kGaugeType, "files",
                                          "Files used at the last reading"};
inline constexpr Metric kTextfilesLeftOut = {
    "tacho_agent_textfiles_left_out", kGaugeType, "files",
    "Files left out of the last reading, damaged or too long"};

inline constexpr const Metric* kAll[] = {&kInfo,
                                         &kCpu,
                                         &kResident,
                                         &kSpoolMessages,
                                         &kSpoolBytes,
                                         &kRows,
                                         &kLostRows,
                                         &kSpoolLostRows,
                                         &kSpoolLostMessages,
                                         &kRefusedSamples,
                                         &kMissingMessages,
                                         &kClockOffset,
                                         &kClockUncertainty,
                                         &kSourceUp,
                                         &kSourceFailing,
                                         &kSourceFailingSeconds,
                                         &kSourceRetrySeconds,
                                         &kSourcePolls,
                                         &kSourceFailures,
                                         &kSourcePollSeconds,
                                         &kSourceInPollSeconds,
                                         &kSourceLostRows,
                                         &kScrapeSamples,
                                         &kScrapeLeftOut,
                                         &kScrapeDuration,
                                         &kScrapeBody,
                                         &kScrapeLapses,
                                         &kTextfilesRead,
                                         &kTextfilesLeftOut};

}  // namespace tacho::agent::own
