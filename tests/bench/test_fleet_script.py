"""What tests/bench/fleet makes of its --script."""

import unittest

import fleet_script
from fleet_script import ScriptError, Step


class FleetScript(unittest.TestCase):
    def test_steps_come_in_order_of_time(self):
        self.assertEqual(
            fleet_script.parse("40s kill-collector 5s; 500ms cut 100%;1m pause 0.1 2s ;"),
            [Step(0.5, "cut", 1.0), Step(40, "kill-collector", seconds=5),
             Step(60, "pause", 0.1, 2)])

    def test_a_step_is_named_as_it_was_written(self):
        texts = ("cut 50%", "pause 10% 5s", "kill-collector", "restart-collector 3s")
        for text in texts:
            self.assertEqual(fleet_script.parse("1s " + text)[0].label, text)

    def test_mistakes_are_named(self):
        for text, problem in (("cut 100%", "expected TIME ACTION"),
                              ("5s explode", "with an action of cut, "),
                              ("soon cut 10%", '"soon" is not a duration'),
                              ("5s cut", "needs a share"),
                              ("5s cut 120%", "not a share of the agents"),
                              ("5s cut ten", "not a share of the agents"),
                              ("5s pause 10%", "needs a duration"),
                              ("5s cut 10% 5s", '"5s" is one word too many')):
            with self.subTest(text), self.assertRaises(ScriptError) as caught:
                fleet_script.parse(text)
            self.assertIn(problem, str(caught.exception))


if __name__ == "__main__":
    unittest.main()
