"""Recording from within training frameworks. Each module imports without its framework.

    tacho.integrations.keras         a callback
    tacho.integrations.torch         a loop over a data loader, and a SummaryWriter
    tacho.integrations.lightning     a logger
    tacho.integrations.huggingface   a callback of the Trainer
    tacho.integrations.jax           a loop, a MetricWriter of CLU, and logging behind the device

All record into the active run, or begin one with the arguments that they were given for init().
"""
