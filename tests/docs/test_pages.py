#!/usr/bin/python3
"""The runner of the pages finds what a page leaves out."""

import pathlib
import tempfile
import unittest

import pages
import session


def block_of(text):
    return pages.blocks("page.md", text)[0]


class PagesTest(unittest.TestCase):
    def test_a_block_without_a_comment_is_run(self):
        block = block_of("```\ntachoctl jobs\n```\n")
        self.assertEqual((block.not_run, block.run_by, block.text), ("", "", "tachoctl jobs\n"))

    def test_comments_right_before_the_fence_count(self):
        block = block_of("<!-- first:\nmkdir x\n-->\n<!-- run: status=4 -->\n```sh\nfalse\n```\n")
        self.assertEqual((block.first, block.options), ("mkdir x\n", {"status": "4"}))

    def test_a_comment_with_text_between_does_not_count(self):
        self.assertEqual(block_of("<!-- not run: needs a chip -->\ntext\n```\nx\n```\n").not_run, "")

    def test_a_block_of_a_list_has_its_commands_without_the_indent(self):
        self.assertEqual(block_of("1. do\n\n   ```\n   a \\\n       b\n   ```\n").text, "a \\\n    b\n")

    def test_no_reason_no_exception(self):
        with self.assertRaisesRegex(pages.Mistake, "needs a reason"):
            block_of("<!-- not run: -->\n```\nx\n```\n")

    def test_a_misspelt_option_is_refused(self):
        with self.assertRaisesRegex(pages.Mistake, "no option 'statsu'"):
            block_of("<!-- run: statsu=4 -->\n```\nx\n```\n")

    def test_a_misspelt_comment_is_refused(self):
        with self.assertRaisesRegex(pages.Mistake, "page.md:2: .*not known"):
            block_of("<!-- dont run: needs a chip -->\n```\nx\n```\n")


class SessionTest(unittest.TestCase):
    def run_page(self, text):
        with tempfile.TemporaryDirectory() as place:
            scratch = pathlib.Path(place)
            (scratch / "clone").mkdir()
            runs = session.Session(scratch / "clone", scratch, {"PATH": "/usr/bin:/bin"})
            try:
                for block in pages.blocks("page.md", text):
                    runs.run(block, {})
            finally:
                runs.close()

    def refuses(self, text, why):
        with self.assertRaisesRegex(pages.Mistake, why):
            self.run_page(text)

    def test_blocks_share_a_shell(self):
        self.run_page("```\nmkdir a && cd a\nexport X=7\n```\n```\ntest $X = 7 && test ${PWD##*/} = a\n```\n")

    def test_python_knows_what_the_shell_has_exported_and_earlier_blocks(self):
        self.run_page("```\nexport X=7\n```\n```python\nimport os\nx = os.environ['X']\n```\n"
                      "```python\nassert x == '7'\n```\n")

    def test_a_failing_command_is_named_with_its_line(self):
        self.refuses("```\ntrue\nfalse\ntrue\n```\n", "page.md:3: status 1 of: false")

    def test_a_command_that_does_not_exist_fails(self):
        self.refuses("```\nno-such-program jobs\n```\n", "page.md:2: status 127 of: no-such-program jobs")

    def test_another_status_than_the_page_says_fails(self):
        self.run_page("<!-- run: status=4 -->\n```\n(exit 4)\n```\n")
        self.refuses("<!-- run: status=4 -->\n```\n(exit 3)\n```\n", "status 3")

    def test_failing_python_fails(self):
        self.refuses("```python\nprint(unknown)\n```\n", "NameError")

    def test_a_language_that_nobody_runs_needs_a_comment(self):
        self.refuses("```rust\nfn main() {}\n```\n", "nobody can run 'rust'")

    def test_output_that_does_not_come_fails(self):
        self.run_page("```\necho step 7 of 9\n```\n<!-- run: output=1 -->\n```\nstep … of 9\n```\n")
        self.refuses("```\necho step 7\n```\n<!-- run: output=1 -->\n```\nstep 8\n```\n", "has printed: step 8")

    def test_what_ends_before_ctrl_c_fails(self):
        self.run_page("<!-- run: ctrl-c=1 -->\n```\nsleep 9\n```\n")
        self.refuses("<!-- run: ctrl-c=5 -->\n```\ntrue\n```\n", "ended before Ctrl-C")

    def test_programs_in_the_background_end_with_the_page(self):
        self.run_page('<!-- run: until="ready" -->\n```\necho ready; sleep 100\n```\n')
        self.refuses("<!-- run: until=\"ready\" -->\n```\ntrap '' INT; echo ready; sleep 3 & wait; exit 0\n```\n"
                     "```\nfalse\n```\n", "status 1 of: false")


if __name__ == "__main__":
    unittest.main()
