//! A value of an intent that one actor alone may write.

use std::fmt;
use std::marker::PhantomData;

/// A value of an intent that only the actor `A` can set. Everybody may read it.
///
/// The intent of a director says which values are applied: replicas, an image, a partition. Two actors that
/// write the same value fight, and the order of actors decides who wins. A `Field` makes that a compile
/// error: [`set`](Self::set) takes the actor, and an actor whose only field is private exists only in its own
/// module, where its `decide(&self, …)` is.
///
/// ```
/// use windlass::Field;
///
/// pub struct Grow(()); // the private field: nobody else can construct or name a value of it
///
/// struct Intent {
///     replicas: Field<Grow, i32>,
/// }
///
/// impl Grow {
///     fn decide(&self, intent: &mut Intent) {
///         intent.replicas.set(self, 5);
///     }
/// }
///
/// let mut intent = Intent { replicas: Field::new(3) };
/// Grow(()).decide(&mut intent);
/// assert_eq!(*intent.replicas.get(), 5);
/// ```
///
/// Another actor cannot set it:
///
/// ```compile_fail,E0308
/// use windlass::Field;
///
/// pub struct Grow(());
/// pub struct Shrink(());
///
/// impl Shrink {
///     fn decide(&self, replicas: &mut Field<Grow, i32>) {
///         replicas.set(self, 1); // expected `&Grow`, found `&Shrink`
///     }
/// }
/// ```
///
/// A value that two actors move in two directions is two fields (`raise_to`, `lower_to`), and one pure
/// function in `draw` combines them.
pub struct Field<A, T> {
    value: T,
    actor: PhantomData<fn(&A)>,
}

impl<A, T> Field<A, T> {
    /// Returns a field with this value: usually the one that is live.
    pub fn new(value: T) -> Self {
        Self { value, actor: PhantomData }
    }

    /// Returns the value.
    pub fn get(&self) -> &T {
        &self.value
    }

    /// Sets the value, on behalf of its actor.
    pub fn set(&mut self, _by: &A, value: T) {
        self.value = value;
    }
}

impl<A, T: Clone> Clone for Field<A, T> {
    fn clone(&self) -> Self {
        Self::new(self.value.clone())
    }
}

impl<A, T: PartialEq> PartialEq for Field<A, T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<A, T: fmt::Debug> fmt::Debug for Field<A, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}
