*** Comments ***
SPDX-License-Identifier: Apache-2.0
robot --pythonpath examples --variable TESTBED:reference examples/router.robot

*** Settings ***
Library         EvenhandLibrary    ${TESTBED}    folder=${OUTPUT DIR}

*** Variables ***
${TESTBED}      reference

*** Test Cases ***
Forwards Between Many Hosts
    ${trial} =    Make Trial    rate=10kfps    duration=1s
    Trial Should Pass    ${trial}

Is Not Slower Than It Was
    ${found} =    Find Throughput    maximum=20kfps    duration=500ms    precision=0.1    frame_size=${128}
    Throughput Should Be At Least    ${found}    15kfps
