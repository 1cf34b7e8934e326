//! Hands batches to the threads of the second half. The first half has no thread of its own: whoever has no batch left fills the next ones, for all, so
//! that no thread waits where there is work. Where there is but one thread, another one may do nothing but fill.

use super::front::{Batch, Front, FrontOutcome};
use crate::error::Error;
use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError};

/// Batches that wait for one thread, at most.
const WAITING: usize = 16;
/// A thread that waits for room goes on when there are no more than this: to be woken for each batch costs more than it gains.
const ROOM: usize = WAITING / 2;
/// Batches that one thread fills in turn, while the others are at work on those before: so many that they seldom wait for each other.
const TURN: usize = 8;

/// What waits for one thread.
#[derive(Default)]
struct Queue {
    waiting: Mutex<Waiting>,
    arrived: Condvar,
    room: Condvar,
}

#[derive(Default)]
struct Waiting {
    batches: VecDeque<Arc<Batch>>,
    /// Whether no more come, or the thread takes no more.
    is_over: bool,
}

/// What is common to the threads.
pub struct Feed {
    front: Mutex<Front>,
    queues: Vec<Queue>,
    spare: Mutex<Vec<Batch>>,
}

/// A thread that panicked leaves nothing half done here.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Queue {
    fn push(&self, batch: &Arc<Batch>) {
        let mut waiting = lock(&self.waiting);
        if !waiting.is_over {
            waiting.batches.push_back(Arc::clone(batch));
            self.arrived.notify_one();
        }
    }

    fn pop(&self) -> Option<Arc<Batch>> {
        let mut waiting = lock(&self.waiting);
        let batch = waiting.batches.pop_front();
        if waiting.batches.len() == ROOM {
            self.room.notify_one();
        }
        batch
    }

    /// Waits until there is a batch, or none will come.
    fn wait(&self) -> Option<Arc<Batch>> {
        let is_idle = |waiting: &mut Waiting| waiting.batches.is_empty() && !waiting.is_over;
        drop(self.arrived.wait_while(lock(&self.waiting), is_idle));
        self.pop()
    }

    fn wait_for_room(&self) {
        let waiting = lock(&self.waiting);
        if waiting.batches.len() >= WAITING {
            drop(self.room.wait_while(waiting, |waiting| waiting.batches.len() > ROOM && !waiting.is_over));
        }
    }

    fn end(&self) {
        lock(&self.waiting).is_over = true;
        self.arrived.notify_all();
        self.room.notify_all();
    }

    fn is_over(&self) -> bool {
        lock(&self.waiting).is_over
    }
}

impl Feed {
    /// Hands out batches that are filled already, then the rest of the source, to so many threads.
    pub fn new(front: Front, begun: Vec<Batch>, threads: usize) -> Self {
        let mut queues = Vec::new();
        queues.resize_with(threads, Queue::default);
        for batch in begun.into_iter().map(Arc::new) {
            queues.iter().for_each(|queue| queue.push(&batch));
        }
        Self { front: Mutex::new(front), queues, spare: Mutex::default() }
    }

    /// The place of a thread.
    pub const fn member(&self, number: u32) -> Member<'_> {
        Member { feed: self, number }
    }

    /// Fills batches until the source ends, or all threads have left.
    ///
    /// # Errors
    /// Where nothing can be read of any input.
    pub fn fill_all(&self) -> Result<(), Error> {
        while self.fill(&mut lock(&self.front))? && !self.queues.iter().all(Queue::is_over) {}
        Ok(())
    }

    /// Fills a batch for all. Returns whether there may be more.
    fn fill(&self, front: &mut Front) -> Result<bool, Error> {
        self.queues.iter().for_each(Queue::wait_for_room);
        let spare = lock(&self.spare).pop().unwrap_or_default();
        let filled = front.fill(spare);
        if let Ok(Some(batch)) = filled {
            let batch = Arc::new(batch);
            self.queues.iter().for_each(|queue| queue.push(&batch));
            return Ok(true);
        }
        self.queues.iter().for_each(Queue::end);
        filled.map(|_| false)
    }

    /// What the first half knows when all have left.
    pub fn finish(self) -> FrontOutcome {
        self.front.into_inner().unwrap_or_else(PoisonError::into_inner).finish()
    }
}

/// A thread's place at the feed. It is left when it goes out of scope, so that nobody waits for a thread that has failed.
pub struct Member<'f> {
    feed: &'f Feed,
    number: u32,
}

impl Member<'_> {
    fn queue(&self) -> Option<&Queue> {
        self.feed.queues.get(self.number as usize)
    }

    /// The next batch; none where the source has ended.
    ///
    /// # Errors
    /// Where nothing can be read of any input.
    pub fn next(&self) -> Result<Option<Arc<Batch>>, Error> {
        let Some(queue) = self.queue() else { return Ok(None) };
        if let Some(batch) = queue.pop() {
            return Ok(Some(batch));
        }
        match self.feed.front.try_lock() {
            Ok(mut front) => {
                let turn = if self.feed.queues.len() > 1 { TURN } else { 1 };
                for _ in 0..turn {
                    if queue.is_over() || !self.feed.fill(&mut front)? {
                        break;
                    }
                }
            }
            Err(TryLockError::WouldBlock | TryLockError::Poisoned(_)) => {}
        }
        Ok(queue.wait())
    }

    /// Gives back a batch, to be filled anew when all have done so.
    pub fn give_back(&self, batch: Arc<Batch>) {
        lock(&self.feed.spare).extend(Arc::into_inner(batch));
    }
}

impl Drop for Member<'_> {
    fn drop(&mut self) {
        self.queue().into_iter().for_each(Queue::end);
    }
}
