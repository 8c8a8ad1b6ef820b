# SPDX-License-Identifier: Apache-2.0
"""OTG: a tester that scripts of the Open Traffic Generator API drive. A started flow is a trial: its metrics
are the trial's progress, and its verdict is said besides.

`traffic.py` says what of a configuration can be sent, and refuses the rest; `transmission.py` sends it;
`service.py` is the API without a transport; `rest.py` and `grpc_front.py` are its two transports.
"""
