//! Tests of the behaviours that users of a priority queue rely on, case by case (`pq…`), and of our
//! differences (`d…`).
#![allow(clippy::expect_used)] // a test fails by panicking

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use tokio::time::{Instant, advance};
use windlass_runtime::queue::{Add, Backoff, Item, Next, PRIORITIES_COUNTED, Priority, Queue};

const HOUR: Duration = Duration::from_hours(1);

fn queue() -> Queue<&'static str> {
    Queue::new(Backoff { jitter: 0.0, ..Backoff::default() })
}

fn at(priority: i32) -> Add {
    Add::now().priority(Priority(priority))
}

/// Returns the next key; fails if none ever comes. With a paused clock, waiting takes no time.
async fn next(queue: &Queue<&'static str>) -> Item<&'static str> {
    let got = tokio::time::timeout(HOUR * 1000, queue.get()).await;
    got.expect("a key comes in time").expect("the queue is open")
}

/// Takes and finishes the next key.
async fn pass(queue: &Queue<&'static str>) -> &'static str {
    let item = next(queue).await;
    let key = *item.key();
    item.finish(Next::Forget);
    key
}

fn is_idle(queue: &Queue<&'static str>) -> bool {
    queue.get().now_or_never().is_none()
}

#[tokio::test(start_paused = true)]
async fn pq1_returns_an_item() {
    let queue = queue();
    queue.add("foo", Add::now());
    assert_eq!(pass(&queue).await, "foo");
    let stats = queue.stats();
    assert_eq!((stats.depth.total(), stats.adds, stats.retries), (0, 1, 0));
}

#[tokio::test(start_paused = true)]
async fn pq2_returns_items_in_order() {
    let queue = queue();
    queue.add("foo", Add::now());
    queue.add("bar", Add::now());
    assert_eq!((pass(&queue).await, pass(&queue).await), ("foo", "bar"));
}

#[tokio::test(start_paused = true)]
async fn pq3_does_not_return_a_locked_item() {
    let queue = queue();
    queue.add("foo", Add::now());
    let _foo = next(&queue).await;
    queue.add("foo", Add::now());
    queue.add("bar", Add::now());
    let bar = next(&queue).await;
    assert_eq!(*bar.key(), "bar");
    let stats = queue.stats();
    assert_eq!((stats.depth.total(), stats.adds), (1, 3));
    assert!(is_idle(&queue));
}

#[tokio::test(start_paused = true)]
async fn pq4_returns_a_locked_item_as_soon_as_it_is_done_ahead_of_later_ones() {
    let queue = queue();
    queue.add("foo", Add::now());
    let foo = next(&queue).await;
    queue.add("foo", Add::now());
    queue.add("bar", Add::now());
    foo.finish(Next::Forget);
    assert_eq!((pass(&queue).await, pass(&queue).await), ("foo", "bar"));
}

#[tokio::test(start_paused = true)]
async fn pq5_deduplicates() {
    let queue = queue();
    queue.add("foo", Add::now());
    queue.add("foo", Add::now());
    assert_eq!((queue.len(), queue.stats().adds), (1, 1));
    pass(&queue).await;
    assert!(is_idle(&queue));
}

#[tokio::test(start_paused = true)]
async fn pq6_returns_an_item_that_was_added_while_locked_once_more() {
    let queue = queue();
    queue.add("foo", Add::now());
    let foo = next(&queue).await;
    queue.add("foo", Add::now());
    queue.add("foo", Add::now());
    assert!(is_idle(&queue));
    foo.finish(Next::Forget);
    assert_eq!(pass(&queue).await, "foo");
    assert!(is_idle(&queue));
}

#[tokio::test(start_paused = true)]
async fn pq7_retains_the_highest_priority() {
    let queue = queue();
    queue.add("foo", at(1));
    queue.add("foo", at(2));
    let foo = next(&queue).await;
    assert_eq!(foo.priority(), Priority(2));
    assert_eq!(queue.stats().depth.iter().collect::<Vec<_>>(), [(Priority(1), 0), (Priority(2), 0)]);
    foo.finish(Next::Forget);
    assert!(is_idle(&queue));
}

#[tokio::test(start_paused = true)]
async fn pq8_will_not_decrease_a_priority() {
    let queue = queue();
    queue.add("foo", at(2));
    queue.add("foo", at(1));
    assert_eq!(next(&queue).await.priority(), Priority(2));
    assert_eq!(queue.stats().depth.at(Priority(1)), 0);
}

#[tokio::test(start_paused = true)]
async fn pq9_a_raised_priority_passes_the_lower_ones() {
    let queue = queue();
    for key in ["foo", "bar", "baz"] {
        queue.add(key, at(0));
    }
    queue.add("baz", at(1));
    assert_eq!((pass(&queue).await, pass(&queue).await, pass(&queue).await), ("baz", "foo", "bar"));
}

#[tokio::test(start_paused = true)]
async fn pq10_an_immediate_add_beats_a_delayed_one() {
    let queue = queue();
    queue.add("foo", Add::now());
    queue.add("foo", Add::after(HOUR));
    assert_eq!(pass(&queue).await, "foo");
}

#[tokio::test(start_paused = true)]
async fn pq11_items_that_are_not_ready_are_not_counted() {
    let queue = queue();
    queue.add("foo", Add::after(HOUR));
    assert_eq!((queue.len(), queue.stats().depth.total()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn pq12_a_get_after_shutdown_answers_none_twice() {
    let queue = queue();
    queue.add("foo", Add::now());
    queue.shut_down();
    assert!(queue.get().await.is_none());
    assert!(queue.get().await.is_none());
    queue.add("foo", Add::now());
    assert_eq!(queue.len(), 0);
}

/// Runs producers and consumers on real threads. Returns the number of runs of each key.
async fn storm(producers: usize, keys: usize, consumers: usize) -> Vec<usize> {
    let queue: Queue<usize> = Queue::new(Backoff::default());
    let running = Arc::new(parking_lot::Mutex::new(HashSet::new()));
    let runs = Arc::new(parking_lot::Mutex::new(vec![0; keys]));
    let consume = |_| {
        let (queue, running, runs) = (queue.clone(), Arc::clone(&running), Arc::clone(&runs));
        tokio::spawn(async move {
            while let Some(item) = queue.get().await {
                assert!(running.lock().insert(*item.key()), "{} was handed out twice", item.key());
                tokio::task::yield_now().await;
                runs.lock()[*item.key()] += 1;
                assert!(running.lock().remove(item.key()));
                item.finish(Next::Forget);
            }
        })
    };
    let consumers: Vec<_> = (0..consumers).map(consume).collect();
    let produce = |producer: usize| {
        let queue = queue.clone();
        tokio::spawn(async move {
            for (n, priority) in (0..keys).zip((0..5).cycle()) {
                let key = (n * 7 + producer * 13) % keys;
                let after = Duration::from_micros(if n % 3 == 0 { 0 } else { (n % 900) as u64 });
                queue.add(key, Add { after, priority: Priority(priority), fresh: n % 11 == 0 });
                assert!(queue.stats().depth.total() <= keys);
            }
        })
    };
    for producer in (0..producers).map(produce).collect::<Vec<_>>() {
        producer.await.expect("a producer ran to its end");
    }
    // Every key has run, and nothing is ready or running: a delayed key would only run once more.
    while queue.len() + queue.in_flight() > 0 || runs.lock().contains(&0) {
        tokio::task::yield_now().await;
    }
    queue.drain().await;
    for consumer in consumers {
        consumer.await.expect("a consumer ran to its end");
    }
    assert_eq!(queue.stats().depth.total(), 0);
    let runs = runs.lock();
    runs.clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn pq13_twenty_producers_of_mixed_items_and_a_hundred_consumers() {
    let runs = storm(20, 1000, 100).await;
    assert!(runs.iter().all(|count| (1..=20).contains(count)), "{runs:?}");
}

#[tokio::test(start_paused = true)]
async fn pq14_an_item_added_for_later_then_now_is_counted_once() {
    let queue = queue();
    queue.add("foo", Add::after(HOUR));
    queue.add("foo", Add::now());
    assert_eq!((queue.len(), queue.stats().adds), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn pq15_later_then_now_at_a_higher_priority_counts_at_the_new_priority_only() {
    let queue = queue();
    queue.add("foo", Add::after(HOUR).priority(Priority(1)));
    queue.add("foo", at(2));
    let stats = queue.stats();
    assert_eq!((stats.depth.at(Priority(1)), stats.depth.at(Priority(2))), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn pq16_raised_items_are_first_come_first_served_in_their_new_priority() {
    let queue = queue();
    queue.add("foo", at(0));
    queue.add("bar", at(0));
    queue.add("bar", at(1));
    queue.add("foo", at(1));
    assert_eq!((pass(&queue).await, pass(&queue).await), ("bar", "foo"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn pq17_ten_producers_a_hundred_consumers_no_double_hand_out() {
    let runs = storm(10, 300, 100).await;
    assert!(runs.iter().all(|count| *count >= 1));
}

#[tokio::test(start_paused = true)]
async fn pq18_high_before_low_whether_ready_or_due() {
    let queue = queue();
    for _ in 0..10 {
        for delay in [0, 1] {
            let add = Add::after(Duration::from_secs(delay));
            queue.add("low", add.priority(Priority::LOW));
            queue.add("high", add);
            advance(Duration::from_secs(delay)).await;
            assert_eq!((pass(&queue).await, pass(&queue).await), ("high", "low"));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn pq19_a_delayed_item_comes_when_its_delay_has_passed() {
    let queue = queue();
    let began = Instant::now();
    queue.add("foo", Add::after(HOUR));
    assert_eq!(pass(&queue).await, "foo");
    assert_eq!((began.elapsed(), queue.stats().retries), (HOUR, 1));
}

#[tokio::test(start_paused = true)]
async fn pq20_a_high_priority_item_that_falls_due_beats_a_queued_low_one() {
    let queue = queue();
    queue.add("high", Add::after(HOUR));
    queue.add("low", Add::now().priority(Priority::LOW));
    advance(HOUR).await;
    assert_eq!((pass(&queue).await, pass(&queue).await), ("high", "low"));
}

#[tokio::test(start_paused = true)]
async fn pq21_a_blocked_get_wakes_on_an_add() {
    let queue = queue();
    let getter = tokio::spawn({
        let queue = queue.clone();
        async move { pass(&queue).await }
    });
    tokio::task::yield_now().await;
    assert!(!getter.is_finished());
    queue.add("foo", Add::now());
    assert_eq!(getter.await.expect("it got a key"), "foo");
}

#[tokio::test(start_paused = true)]
async fn pq22_a_waiting_item_that_is_added_again_comes_at_once() {
    let queue = queue();
    let began = Instant::now();
    queue.add("foo", Add::after(HOUR));
    queue.add("foo", Add::now());
    assert_eq!(pass(&queue).await, "foo");
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn pq23_delayed_items_come_in_the_order_in_which_they_fall_due() {
    let queue = queue();
    for (key, minutes) in [("third", 3), ("first", 1), ("second", 2)] {
        queue.add(key, Add::after(Duration::from_mins(minutes)));
    }
    assert_eq!((pass(&queue).await, pass(&queue).await, pass(&queue).await), ("first", "second", "third"));
}

#[tokio::test(start_paused = true)]
async fn pq24_a_blocked_get_is_released_by_shutdown() {
    let queue = queue();
    let getters: Vec<_> = (0..3)
        .map(|_| {
            let queue = queue.clone();
            tokio::spawn(async move { queue.get().await.is_none() })
        })
        .collect();
    tokio::task::yield_now().await;
    queue.shut_down();
    for getter in getters {
        assert!(getter.await.expect("it was released"));
    }
}

#[tokio::test(start_paused = true)]
async fn pq25_items_are_counted_when_they_fall_due_and_so_the_second_time() {
    let queue = queue();
    for _ in 0..2 {
        queue.add("foo", Add::after(HOUR));
        assert_eq!(queue.len(), 0);
        advance(HOUR).await;
        assert_eq!((queue.len(), queue.stats().depth.total()), (1, 1));
        assert_eq!(pass(&queue).await, "foo");
    }
}

#[tokio::test(start_paused = true)]
async fn pq26_an_expired_retry_that_is_added_again_is_not_counted_twice() {
    let queue = queue();
    queue.add("foo", Add::now());
    next(&queue).await.finish(Next::After(HOUR));
    advance(HOUR).await;
    queue.add("foo", Add::now());
    assert_eq!((queue.len(), queue.stats().adds), (1, 2));
    pass(&queue).await;
    assert!(is_idle(&queue));
}

#[tokio::test(start_paused = true)]
async fn pq27_each_item_waits_by_its_own_failures() {
    let queue = queue();
    let fail = Next::Retry { at_most: None };
    queue.add("bar", Add::now());
    for _ in 0..7 {
        next(&queue).await.finish(fail);
    }
    // The eighth failure of bar, the first of foo.
    next(&queue).await.finish(fail);
    queue.add("foo", Add::now());
    let began = Instant::now();
    next(&queue).await.finish(fail);
    assert_eq!(pass(&queue).await, "foo");
    assert_eq!(began.elapsed(), Duration::from_millis(5));
    assert_eq!(pass(&queue).await, "bar");
    assert_eq!(began.elapsed(), Duration::from_millis(640));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn pq28_shutdown_while_items_are_handed_out_does_not_deadlock() {
    for _ in 0..50 {
        let queue: Queue<usize> = Queue::new(Backoff::default());
        let workers: Vec<_> = (0..8)
            .map(|_| {
                let queue = queue.clone();
                tokio::spawn(async move {
                    while let Some(item) = queue.get().await {
                        item.finish(Next::Forget);
                    }
                })
            })
            .collect();
        for key in 0..200 {
            queue.add(key, Add::now());
        }
        queue.drain().await;
        for worker in workers {
            worker.await.expect("the worker ended");
        }
        assert_eq!(queue.in_flight(), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn pq29_priorities_are_counted_by_themselves_up_to_a_limit() {
    let queue: Queue<i32> = Queue::new(Backoff::default());
    for priority in 0..=25 {
        queue.add(priority, at(priority));
    }
    let depth = queue.stats().depth;
    assert_eq!((depth.iter().count(), depth.beyond(), depth.total()), (PRIORITIES_COUNTED, Some(1), 26));
}

#[tokio::test(start_paused = true)]
async fn d7_keys_that_fail_together_do_not_wait_for_each_other_nor_does_a_healthy_key() {
    let queue: Queue<usize> = Queue::new(Backoff { jitter: 0.0, ..Backoff::default() });
    for round in 0..4 {
        if round == 0 {
            (0..10_000).for_each(|key| queue.add(key, Add::now()));
        }
        for _ in 0..10_000 {
            queue.get().await.expect("open").finish(Next::Retry { at_most: None });
        }
    }
    // Four failures of each of ten thousand keys cost 5 + 10 + 20 ms; a shared bucket would have cost an
    // hour.
    let began = Instant::now();
    queue.add(10_000, Add::now());
    let healthy = queue.get().await.expect("open");
    assert_eq!((*healthy.key(), began.elapsed()), (10_000, Duration::ZERO));
    healthy.finish(Next::Forget);
    for _ in 0..10_000 {
        queue.get().await.expect("open").finish(Next::Forget);
    }
    assert_eq!(began.elapsed(), Duration::from_millis(40));
}

#[tokio::test(start_paused = true)]
async fn d8_a_delayed_add_to_a_ready_key_is_not_lost() {
    let queue = queue();
    let began = Instant::now();
    queue.add("foo", Add::now());
    queue.add("foo", Add::after(HOUR));
    assert_eq!(pass(&queue).await, "foo");
    assert_eq!(began.elapsed(), Duration::ZERO);
    assert_eq!(pass(&queue).await, "foo");
    assert_eq!(began.elapsed(), HOUR);
    assert!(is_idle(&queue));
}

#[tokio::test(start_paused = true)]
async fn d8_a_delayed_add_to_a_running_or_delayed_key_is_not_lost() {
    let queue = queue();
    let began = Instant::now();
    queue.add("foo", Add::now());
    let foo = next(&queue).await;
    queue.add("foo", Add::after(HOUR));
    foo.finish(Next::After(HOUR / 2));
    pass(&queue).await;
    assert_eq!(began.elapsed(), HOUR / 2);
    pass(&queue).await;
    assert_eq!(began.elapsed(), HOUR);
}

#[tokio::test(start_paused = true)]
async fn the_requeue_of_a_run_is_replaced_by_that_of_a_later_run() {
    let queue = queue();
    queue.add("foo", Add::now());
    next(&queue).await.finish(Next::After(HOUR));
    queue.add("foo", Add::now());
    next(&queue).await.finish(Next::Forget);
    advance(HOUR * 2).await;
    assert!(is_idle(&queue));
}

#[tokio::test(start_paused = true)]
async fn a_failure_before_the_backoff_has_ended_is_neither_counted_nor_does_it_move_the_retry() {
    let queue = Queue::new(Backoff { base: Duration::from_secs(8), jitter: 0.0, ..Backoff::default() });
    let fail = Next::Retry { at_most: None };
    queue.add("foo", Add::now());
    next(&queue).await.finish(fail);
    let began = Instant::now();
    for _ in 0..5 {
        advance(Duration::from_secs(1)).await;
        queue.add("foo", Add::now());
        let early = next(&queue).await;
        assert_eq!(early.failures(), 1);
        early.finish(fail);
    }
    let retry = next(&queue).await;
    assert_eq!((began.elapsed(), retry.failures()), (Duration::from_secs(8), 1));
    retry.finish(fail);
    assert_eq!(next(&queue).await.failures(), 2);
    assert_eq!(began.elapsed(), Duration::from_secs(8 + 16));
}

#[tokio::test(start_paused = true)]
async fn success_and_a_fresh_add_forget_failures() {
    let queue = queue();
    for fresh in [false, true] {
        queue.add("foo", Add::now());
        for _ in 0..3 {
            next(&queue).await.finish(Next::Retry { at_most: None });
        }
        if fresh {
            queue.add("foo", Add::now().fresh());
        } else {
            next(&queue).await.finish(Next::Forget);
            queue.add("foo", Add::now());
        }
        let foo = next(&queue).await;
        assert_eq!(foo.failures(), 0);
        foo.finish(Next::Forget);
    }
}

#[tokio::test(start_paused = true)]
async fn a_limited_retry_waits_no_longer_than_its_limit() {
    let queue = queue();
    let limit = Duration::from_millis(50);
    queue.add("foo", Add::now());
    for _ in 0..10 {
        next(&queue).await.finish(Next::Retry { at_most: Some(limit) });
    }
    let began = Instant::now();
    let foo = next(&queue).await;
    assert_eq!((foo.failures(), began.elapsed()), (10, limit));
}

#[tokio::test(start_paused = true)]
async fn a_dropped_item_is_queued_again_at_its_priority() {
    let queue = queue();
    queue.add("foo", at(3));
    drop(next(&queue).await);
    let foo = next(&queue).await;
    assert_eq!((*foo.key(), foo.priority()), ("foo", Priority(3)));
}

#[tokio::test(start_paused = true)]
async fn a_retry_keeps_its_priority_when_a_resync_comes_first() {
    let queue = queue();
    queue.add("foo", at(0));
    next(&queue).await.finish(Next::Retry { at_most: None });
    queue.add("foo", Add::now().priority(Priority::LOW));
    assert_eq!(next(&queue).await.priority(), Priority(0));
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_get_takes_no_item_and_wakes_another_worker() {
    let queue = queue();
    let mut first = Box::pin(queue.get());
    assert!((&mut first).now_or_never().is_none());
    let second = worker(queue.clone());
    tokio::task::yield_now().await;
    queue.add("foo", Add::now());
    drop(first);
    let item = second.await.expect("the second worker runs");
    assert_eq!(item, "foo");
}

fn worker(queue: Queue<&'static str>) -> tokio::task::JoinHandle<&'static str> {
    tokio::spawn(async move { pass(&queue).await })
}

#[tokio::test(start_paused = true)]
async fn a_busy_worker_leaves_no_timer_without_a_waiting_worker() {
    let queue = queue();
    let hold = |queue: Queue<&'static str>| tokio::spawn(async move { next(&queue).await });
    let (one, two) = (hold(queue.clone()), hold(queue.clone()));
    tokio::task::yield_now().await;
    // The first timer wakes one of the two workers; the second timer is not the earliest, and wakes none.
    queue.add("near", Add::after(Duration::from_secs(1)));
    queue.add("far", Add::after(Duration::from_secs(2)));
    let (one, two) = (one.await.expect("it ran"), two.await.expect("it ran"));
    let mut got = [*one.key(), *two.key()];
    got.sort_unstable();
    assert_eq!(got, ["far", "near"]);
}

#[tokio::test(start_paused = true)]
async fn drain_waits_for_running_items() {
    let queue = queue();
    queue.add("foo", Add::now());
    let foo = next(&queue).await;
    let mut drain = Box::pin(queue.drain());
    assert!((&mut drain).now_or_never().is_none());
    foo.finish(Next::Retry { at_most: None });
    drain.await;
    assert_eq!((queue.in_flight(), queue.len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn running_items_count_as_unfinished_work() {
    let queue = queue();
    queue.add("foo", Add::now());
    queue.add("bar", Add::now());
    let _foo = next(&queue).await;
    advance(Duration::from_secs(2)).await;
    let _bar = next(&queue).await;
    advance(Duration::from_secs(1)).await;
    let stats = queue.stats();
    assert_eq!((stats.unfinished, stats.longest_running), (Duration::from_secs(4), Duration::from_secs(3)));
    assert!((stats.queue_time.sum() - 2.0).abs() < 1e-9);
}
