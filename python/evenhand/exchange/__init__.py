# SPDX-License-Identifier: Apache-2.0
"""Exchange: other testers' files. Theirs are read as a stranger's, key by key; ours are written for them as
far as they can say it."""
