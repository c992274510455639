"""The examples of the pages of C and Python, as they stand there, run and record."""
import os
import pathlib
import re
import subprocess
import tempfile

import case

PAGES = ("client/c/README.md", "client/python/README.md", "client/README.md")

# The code that an example assumes, by a word that occurs in it.
CONTEXTS = {
    "keras": """
class Model:
    def fit(self, x, y, epochs, callbacks):
        import test_integrations
        test_integrations.KerasTest.fit(*callbacks, epochs=epochs)
model, x, y = Model(), None, None
""",
    "torch": """
import torch
loader = [torch.tensor([1.0])] * 3
def train_on(batch): return batch.sum()
""",
    "lightning": """
class Trainer:
    def __init__(self, logger): self.logger = logger
    def fit(self, model):
        self.logger.log_hyperparams({"lr": 0.1})
        self.logger.log_metrics({"loss": 1.0}, 0)
        self.logger.finalize("success")
model = None
""",
    "huggingface": """
class Trainer:
    def __init__(self, model, callbacks): self.callbacks = callbacks
    def train(self):
        import test_integrations
        test_integrations.HuggingFaceTest.train(*self.callbacks)
model = None
""",
    "jax": """
import test_integrations
batches, state = [1.0, 2.0, 3.0], None
def train_step(state, batch): return state, {"loss": test_integrations.FakeArray(batch)}
""",
    "": """
steps = 3
def train_one_step(): return 0.5
def next_batch(): return 1.0
def train_on(batch): return 0.5 * batch
def all_reduce(): pass
def send_to(task): pass
""",
}
C_CONTEXT = """
#include <tacho.h>
enum {{ steps = 3 }};
static double train_one_step(void) {{ return 0.5; }}
int main(void) {{
{}
  (void)train_one_step;
  return 0;
}}
"""


def blocks(language):
    """[(where, text)] of the examples of that language."""
    found = []
    for page in PAGES:
        if not (case.ROOT / page).exists():
            continue
        text = (case.ROOT / page).read_text()
        for match in re.finditer(rf"```{language}\n(.*?)```", text, re.DOTALL):
            line = text.count("\n", 0, match.start()) + 1
            found.append((f"{page}:{line}", match.group(1)))
    return found


class ReadmeTest(case.Case):
    def examples(self, language, needle, at_least):
        found = [(where, text) for where, text in blocks(language) if needle in text]
        self.assertGreaterEqual(len(found), at_least, "examples of the pages")
        for where, text in found:
            with self.subTest(where), tempfile.TemporaryDirectory() as directory:
                self.directory = directory
                yield text
                read = self.read()
                self.assertTrue(read.rows, where)
                self.assertEqual(read.refused, 0, where)
                self.assertTrue(read.closed, where)

    def test_python(self):
        for text in self.examples("python", "log", 6):
            self.check_python(text)

    def test_frameworks(self):
        frameworks = set()
        for text in self.examples("python", "tacho.integrations", 6):
            frameworks.add(re.search(r"integrations\.(\w+)", text).group(1))
            self.check_python(text)
        self.assertEqual(frameworks, set(CONTEXTS) - {""})

    def check_python(self, text):
        names = re.findall(r"integrations\.(\w+)", text)
        program = CONTEXTS[names[0] if names else ""] + text
        done = self.python(program, TACHO_LIBRARY=os.environ["TACHO_LIBRARY"])
        if "No module named 'torch'" in done.stderr:
            self.skipTest("no torch: deploy/packages.sh test provides it")
        self.assertEqual((done.returncode, done.stderr), (0, ""), text)

    def test_c(self):
        library = pathlib.Path(os.environ["TACHO_LIBRARY"])
        for text in self.examples("c", "tacho_", 3):
            source = pathlib.Path(self.directory, "example.c")
            source.write_text(C_CONTEXT.format(text))
            program = source.with_suffix("")
            subprocess.run(
                ["cc", "-std=c99", "-Wall", "-Wextra", "-Werror", f"-I{case.ROOT}/client/c", source, "-o",
                 program, library, f"-Wl,-rpath,{library.parent}"],
                check=True,
            )  # fmt: skip
            environment = {**os.environ, "TACHO_JOB": "c", "TACHO_RING_DIR": self.directory}
            subprocess.run([program], check=True, env=environment)


if __name__ == "__main__":
    case.main()
