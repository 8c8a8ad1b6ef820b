# SPDX-License-Identifier: Apache-2.0
"""How fast is this router? examples/throughput.py TESTBED [RUN]"""

import sys

import evenhand

goal = evenhand.ThroughputGoal(max_fps=100e3, precision=0.05, duration_s=0.5, final_duration_s=1)
testbed_file, run = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
with evenhand.open_testbed(
    testbed_file, run=run, on_event=lambda event: print(".", end="", file=sys.stderr, flush=True)
) as testbed:
    for frame_size in (128, 512):
        found = testbed.throughput(frame_size=frame_size, goal=goal, waits=evenhand.SHORT_WAITS)
        print(frame_size, "octets:", found.outcome, found.throughput_fps, "fps per direction")
        print(*(deviation["text"] for deviation in found.to_document()["deviations"]), sep="\n")
