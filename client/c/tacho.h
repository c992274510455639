/* A flight recorder for training jobs, for C and for every language that can call C.
 *
 *   tacho_options options = TACHO_OPTIONS_INIT;
 *   options.job = "resnet";
 *   tacho_recorder* recorder = tacho_open(&options);
 *   tacho_metric loss = tacho_gauge(recorder, "loss", "1", "Training loss.");
 *   for (int64_t step = 0; step < steps; ++step) {
 *     tacho_set(recorder, loss, train_one_step());
 *     tacho_commit_step(recorder, step);
 *   }
 *   tacho_close(recorder);
 *
 * Link with -ltacho. What is recorded lies in a file in memory that the agent of this host
 * (tacho-agent) reads, also after the process has died. Recording makes no system call, takes no
 * lock and allocates nothing. Nothing here ends the process or throws: on trouble it says so once
 * on standard error, counts what it had to refuse, and the training goes on unrecorded.
 *
 * One recorder is used by one thread at a time; a process may have several. In a child of fork()
 * every call does nothing, and says TACHO_OK; tacho_recording() is 0 there.
 *
 * Texts are UTF-8 and end with a zero byte. NULL is an empty text. Every function takes NULL for a
 * recorder, and does nothing.
 */
#ifndef TACHO_CLIENT_C_TACHO_H_
#define TACHO_CLIENT_C_TACHO_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The library's soname is libtacho.so.1 as long as programs built with this header run with it.
 * Functions are only ever added, under a symbol version of their own. */
#define TACHO_ABI_VERSION 1

typedef struct tacho_recorder tacho_recorder;

/* A metric of one recorder. */
typedef int32_t tacho_metric;
#define TACHO_NO_METRIC (-1)

/* A histogram of one recorder. */
typedef int32_t tacho_histogram;
#define TACHO_NO_HISTOGRAM (-1)

/* What most functions return. */
enum {
  TACHO_OK = 0,
  TACHO_REFUSED = 1,       /* Not recorded, but counted; tacho_error() says why. */
  TACHO_NOT_RECORDING = 2, /* There is no ring; tacho_error() says why. */
  TACHO_INVALID = 3        /* A NULL recorder, or a NULL array of more than 0. */
};

/* Begin with TACHO_OPTIONS_INIT. What is not set comes from the environment, then from the default.
 */
typedef struct tacho_options {
  /* sizeof(tacho_options) as the caller knows it: which fields there are. */
  size_t size;
  /* Where the ring is created: TACHO_RING_DIR, "/run/tacho". */
  const char* directory;
  /* The training run's name, 1 to 256 bytes. Without one nothing is recorded. */
  const char* job;
  /* The process of the job, and which start of the job this is, from 0; below 0 is not set. */
  int64_t task;
  int64_t attempt;
  /* Room for records, 256 KiB to 1 GiB; 0 is the default, 4 MiB. */
  uint64_t ring_bytes;
  /* Clocks: ns since the Unix epoch, and of one that is never set; NULL is the system's. */
  int64_t (*now_unix_ns)(void);
  int64_t (*now_monotonic_ns)(void);
  /* How often histograms are recorded; 0 is with every row, below 0 the default, every second. */
  int64_t histogram_interval_ns;
  /* Permissions of the ring, of which 0644 can be given; 0 is 0644. */
  uint32_t ring_mode;
  /* The group of runs that the job belongs to, such as a sweep: TACHO_GROUP. Cut at 256 bytes. */
  const char* group;
} tacho_options;

#define TACHO_OPTIONS_INIT \
  { sizeof(tacho_options), NULL, NULL, -1, -1, 0, NULL, NULL, -1, 0, NULL }

/* The version of the library that is loaded, such as "0.1.0". */
const char* tacho_version(void);

/* NULL options are the defaults. Never fails but for want of memory (NULL): see tacho_recording().
 */
tacho_recorder* tacho_open(const tacho_options* options);

/* Marks the ring as properly ended and leaves the file to the agent: the task has ended. The handle
 * is invalid after. */
void tacho_close(tacho_recorder* recorder);

/* Instead of tacho_close(), for a process that is about to call exit() on this thread and may fail:
 * nothing more is recorded, and exit() closes the ring. With another status than 0 the record says
 * that the process failed. exit() on the thread that recorded last needs no such call. */
void tacho_leave_to_exit(tacho_recorder* recorder);

/* 1 if this process records, else 0. */
int tacho_recording(const tacho_recorder* recorder);

/* Why nothing is recorded, else why something was refused last, else "". Until the next call. */
const char* tacho_error(const tacho_recorder* recorder);

/* The ring's file, or "". Until the recorder is closed. */
const char* tacho_path(const tacho_recorder* recorder);

/* How many values, metrics, rows, events and attributes were refused. */
uint64_t tacho_refused(const tacho_recorder* recorder);

/* Declares a metric, at any time; again, by the same name, gives the same one. A gauge is a level:
 * it has no value in a row before which it was not set. A counter is a running total: it keeps its
 * value from row to row. TACHO_NO_METRIC: a name that is empty, longer than 256 bytes or no clean
 * UTF-8; more than 1,024 metrics; another type for a name. */
tacho_metric tacho_gauge(tacho_recorder* recorder, const char* name, const char* unit,
                         const char* help);
tacho_metric tacho_counter(tacho_recorder* recorder, const char* name, const char* unit,
                           const char* help);

/* Sets the metric's value in the row to come; the last one counts. Every bit is kept. */
int tacho_set(tacho_recorder* recorder, tacho_metric metric, double value);
/* Adds to what the row to come has, or to 0. */
int tacho_add(tacho_recorder* recorder, tacho_metric metric, double amount);
/* tacho_set() of `count` metrics. All that can be set are, also when one is refused. */
int tacho_set_values(tacho_recorder* recorder, const tacho_metric* metrics, const double* values,
                     size_t count);

/* Writes one row of all metrics. A time (ns since the Unix epoch) before 1970 is refused. */
int tacho_commit_step(tacho_recorder* recorder, int64_t step);
int tacho_commit_step_at(tacho_recorder* recorder, int64_t step, int64_t time_unix_ns);
/* The same for a row that belongs to no step. */
int tacho_commit(tacho_recorder* recorder);

/* tacho_set_values() and tacho_commit_step() in one call. */
int tacho_log(tacho_recorder* recorder, int64_t step, const tacho_metric* metrics,
              const double* values, size_t count);

/* One step: from here to tacho_end_step(), which writes its row with what was set in between, and
 *   step_duration_seconds  from the beginning to the end
 *   step_time_seconds      from the end of the step before to this one's
 *   <phase>_seconds        the time in each phase that the step entered, one after the other
 * by a monotonic clock. A step within another one is refused; the outer one goes on. */
int tacho_begin_step(tacho_recorder* recorder, int64_t step);
int tacho_end_step(tacho_recorder* recorder);
/* Writes no row: gauges set in the step are dropped, counters stay. */
int tacho_abandon_step(tacho_recorder* recorder);

/* A phase of steps; again, by the same name, gives the same one. "data" (waiting for input),
 * "compute", "comm" (waiting in collectives), "checkpoint" and "eval" are known to the collector
 * and recorded as docs/notation.md has them; any other x is recorded as x_seconds. At most 32. */
tacho_metric tacho_declare_phase(tacho_recorder* recorder, const char* name);
/* From now until the next phase or the end of the step, time belongs to this phase. Time of a phase
 * that is entered again is added. TACHO_REFUSED outside a step. */
int tacho_enter_phase(tacho_recorder* recorder, tacho_metric phase);
/* From now on, time belongs to no phase. */
int tacho_leave_phase(tacho_recorder* recorder);

/* A collective of steps, between tasks: "dp-allreduce" is recorded as
 * collective_dp_allreduce_seconds and collective_dp_allreduce_bytes. With a peer, the task at the
 * other end of an exchange, "pp-send" is collective_pp_send_peer_3_seconds and the same with
 * _bytes; a peer below 0 is none. Again, by the same name and peer, gives the same one. At most 16,
 * each peer counted. client/collective_scope.h says more. */
typedef int32_t tacho_collective;
#define TACHO_NO_COLLECTIVE (-1)
tacho_collective tacho_declare_collective(tacho_recorder* recorder, const char* name, int64_t peer);
/* From here to tacho_end_collective(), time belongs to this collective and to the phase "comm".
 * What is recorded several times in a step adds up. `bytes` is what this task contributes or moves;
 * 0: not known. TACHO_REFUSED outside a step and within another collective. */
int tacho_begin_collective(tacho_recorder* recorder, tacho_collective collective, uint64_t bytes);
/* Time belongs to the phase again in which the collective began. */
int tacho_end_collective(tacho_recorder* recorder);

/* A distribution: how many observations fell into each bucket since the beginning, and the metric
 * <name>_sum. The buckets' upper bounds are first, first * factor, ... (`bounds` of them, 1 to 64),
 * and one more bucket has what is above. 0 for any of the three is its default: 0.0001, 2, 24. At
 * most 32 histograms, which have no metric's name. */
tacho_histogram tacho_declare_histogram(tacho_recorder* recorder, const char* name,
                                        const char* unit, const char* help, double first,
                                        double factor, uint32_t bounds);
int tacho_observe(tacho_recorder* recorder, tacho_histogram histogram, const double* values,
                  size_t count);

typedef struct tacho_field {
  const char* name;  /* 1 to 128 bytes. */
  const char* value; /* Cut at 1,024 bytes. */
} tacho_field;

/* Something that happened now, at the step of the last row. docs/notation.md lists the kinds that
 * mean something to the collector; any other of at most 128 bytes is kept and shown. The message is
 * cut at 1,024 bytes; at most 32 fields. May allocate. */
int tacho_event(tacho_recorder* recorder, const char* kind, const char* message,
                const tacho_field* fields, size_t count);

/* The same at a step of your choice. */
int tacho_event_at_step(tacho_recorder* recorder, int64_t step, const char* kind,
                        const char* message, const tacho_field* fields, size_t count);

/* A fact about this attempt that is no metric: model, batch size, a hyperparameter. A later value
 * replaces an earlier one, an empty one removes it. Keys of 1 to 128 bytes, values cut at 4,096.
 * May allocate. */
int tacho_set_attribute(tacho_recorder* recorder, const char* key, const char* value);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* TACHO_CLIENT_C_TACHO_H_ */
