/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A test that hangs says where. Criterion kills a test at its timeout, and nothing of it is heard: not what it waited
 * for, not how the consumers stood. The alarm goes off a bit before, whatever the deadlines of single waits add up to:
 * it writes where the test's thread is and what the fixtures know, and ends the process.
 */
#ifndef TESTS_SUPPORT_ALARM_H
#define TESTS_SUPPORT_ALARM_H

/*
 * Sets the alarm of the test that runs, to ALARM_LEAD seconds (a tenth, if that is more) before its timeout, as counted
 * from the start of the process. Called by fixtures, as often as they like; does nothing in programs without Criterion.
 */
void alarm_arm(void);
/* In a child after fork(): sets its own, a second earlier. */
void alarm_arm_child(void);
/* The same at a time of its own, in seconds from now on. */
void alarm_arm_in(double seconds);

enum { ALARM_LEAD = 5 };

/*
 * Who has something to tell of the state of a test. Called by any thread, at most once a second, perhaps while the
 * test's thread is in the middle of a call: it may only use what any thread may, or what finds out by itself that
 * another thread is at it. Writes to stderr.
 */
typedef void alarm_teller(void *subject);
/* At most 64 at a time; more are left out. */
void alarm_add(alarm_teller *teller, void *subject);
/* Waits for a teller at work. A subject that isn't there is no error. */
void alarm_remove(void *subject);
/* Lets all tell now: for a wait that gives up. */
void alarm_tell(void);
#endif
