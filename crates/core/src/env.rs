//! Time and identity, passed in so that a test can own them.
use std::{fmt::Debug, sync::Arc, time::Duration};

use async_trait::async_trait;

use crate::version::Millis;

#[async_trait]
pub trait Clock: Debug + Send + Sync {
    fn now(&self) -> Millis;
    async fn sleep(&self, pause: Duration);
}

/// Makes names nobody else makes.
pub trait Ids: Debug + Send + Sync {
    fn uuid(&self) -> u128;
}

/// The world a table lives in. Floors 0 to 2 take time and ids from here only: a seed replays any run.
#[derive(Debug, Clone)]
pub struct Env {
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn Ids>,
}

impl Env {
    /// The machine's clock and random ids.
    pub fn system() -> Self {
        Self { clock: Arc::new(SystemClock), ids: Arc::new(RandomIds) }
    }
}

#[derive(Debug)]
struct SystemClock;

#[async_trait]
impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "the one place that may ask the machine for the time")]
    fn now(&self) -> Millis {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Millis(since.map_or(0, |it| i64::try_from(it.as_millis()).unwrap_or(i64::MAX)))
    }

    #[expect(clippy::disallowed_methods, reason = "the one place that may sleep")]
    async fn sleep(&self, pause: Duration) {
        tokio::time::sleep(pause).await;
    }
}

#[derive(Debug)]
struct RandomIds;

impl Ids for RandomIds {
    #[expect(clippy::disallowed_methods, reason = "the one place that may draw random ids")]
    fn uuid(&self) -> u128 {
        uuid::Uuid::new_v4().as_u128()
    }
}
