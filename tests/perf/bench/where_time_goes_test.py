"""How what perf has sampled is shared out.

Usage: where_time_goes_test.py FOLDER-OF-THE-SCRIPTS [unittest arguments]
"""

import sys
import unittest

sys.path.insert(0, sys.argv.pop(1))
from where_time_goes import part_of, samples  # noqa: E402

# As perf report prints them.
REPORT = """\
# Overhead  Shared Object         Symbol
    40.00%  [kernel.kallsyms]     [k] __memcpy
    20.00%  [kernel.kallsyms]     [k] rep_movs_alternative
    10.50%  libfabric.so.1.19.2   [.] smr_progress
     9.50%  weft-write-loop       [.] weft::core::Engine::submit(int)
"""


class Parts(unittest.TestCase):
    def in_kernel(self, *functions):
        return {part_of("[kernel.kallsyms]", function) for function in functions}

    def test_functions_of_the_kernel_go_by_their_words(self):
        self.assertEqual(self.in_kernel("_copy_to_iter", "__memcpy", "raw_copy_from_user", "clear_page_erms"),
                         {"kernel: copying"})
        self.assertEqual(self.in_kernel("process_vm_rw_core", "gup_pgd_range"),
                         {"kernel: memory of others"})
        self.assertEqual(self.in_kernel("tcp_sendmsg", "__sock_sendmsg", "ip_rcv", "__ip_queue_xmit",
                                        "__dev_queue_xmit", "netdev_core_pick_tx", "nf_hook_slow"),
                         {"kernel: sockets"})
        self.assertEqual(self.in_kernel("ep_poll", "do_epoll_wait", "__schedule", "resched_curr",
                                        "do_sched_yield", "__switch_to", "__fdget"),
                         {"kernel: polling, backoff"})

    def test_the_middle_of_a_word_is_none(self):
        self.assertEqual(self.in_kernel("do_nanosleep_locked", "hrtimer_sleep_on", "skip_one",
                                        "vdev_state", "conf_set"), {"kernel: the rest"})

    def test_other_objects(self):
        self.assertEqual(part_of("weft-write-loop", "void weft::providers::Rail::post()"),
                         "Weft's provider code")
        self.assertEqual(part_of("libc.so.6", "memcpy"), "C and C++ libraries, clock")

    def test_shares_are_added_up(self):
        self.assertEqual(samples(REPORT.splitlines()),
                         {"kernel: copying": 60.0, "libfabric": 10.5, "engine": 9.5})


if __name__ == "__main__":
    unittest.main()
