// Which job, task and attempt this process is, from what launchers leave in its environment.
//
// Each of the three is decided separately: the first line that exists counts. An empty variable
// counts as absent.
//
//   job      TACHO_JOB
//            JOBSET_NAME                           Kubernetes JobSet
//            SLURM_JOB_NAME-SLURM_JOB_ID           Slurm; without a name slurm-SLURM_JOB_ID
//            TORCHELASTIC_RUN_ID                   torchrun, unless it is its default, "none"
//            TPU_NAME                              a TPU of GCE or GKE
//   task     TACHO_TASK
//            RANK                                  torchrun; only with TORCHELASTIC_RUN_ID or
//                                                  WORLD_SIZE, since others use that name too
//            JOB_COMPLETION_INDEX                  Kubernetes Job, JobSet; plus PROCESSES_IN_JOB x
//                                                  JOB_GLOBAL_INDEX, or else x JOB_INDEX
//            SLURM_PROCID                          Slurm
//            TPU_WORKER_ID                         plus MEGASCALE_SLICE_ID x the number of names in
//                                                  TPU_WORKER_HOSTNAMES
//            0
//   attempt  TACHO_ATTEMPT
//            JOBSET_RESTART_ATTEMPT                JobSet
//            SLURM_RESTART_COUNT                   Slurm, after a requeue
//            TORCHELASTIC_RESTART_COUNT            torchrun
//            0
//
// A job is named by its outermost launcher, whose name is the owner's; a task by its innermost one:
// under Slurm or in a pod, torchrun starts several processes that share all variables but its own.
// An attempt is the outermost launcher's, which counts the same on all tasks; torchrun's agents
// count each their own failures.
//
// Kubernetes puts JOB_COMPLETION_INDEX there by itself; JOBSET_NAME, JOB_INDEX, JOB_GLOBAL_INDEX,
// JOBSET_RESTART_ATTEMPT and PROCESSES_IN_JOB (pods of one of the JobSet's jobs) are to be asked
// for in the pod's template, from the labels that the controller sets
// (jobset.sigs.k8s.io/jobset-name, job-index, job-global-index, restart-attempt), under the names
// that xpk and MaxText use.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace tacho::client {

// The value of a variable; nullptr if there is none.
using EnvironmentGetter = std::function<const char*(const char* name)>;

struct AttemptIdentity {
  std::string job;  // Empty: no name was found.
  uint32_t task = 0;
  uint32_t attempt = 0;
  // An error, with the variable's name; empty if there is none. With an error nothing must be
  // recorded: a wrong task would mix its rows with another's.
  std::string trouble;
};

// An argument that is given wins, and the environment is not read for it.
AttemptIdentity FindIdentity(const std::string& job, std::optional<uint32_t> task,
                             std::optional<uint32_t> attempt, const EnvironmentGetter& environment);

}  // namespace tacho::client
