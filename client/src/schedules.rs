//! Events that wait to be published later; [`PublishOptions::deliver_at`](crate::PublishOptions::deliver_at) and its
//! neighbours make them. Over HTTP.

use crate::client::Client;
use crate::error::RequestError;
use crate::http_client::ask;
use http::Method;
use prombus_api::http::{PendingSchedule, SchedulePage, SchedulesQuery, percent_encoded};

impl Client {
    /// Schedules that wait, of one topic or of all, in the order of their ids. A page may have fewer than its limit
    /// although there are more.
    pub async fn schedules(&self, query: &SchedulesQuery) -> Result<SchedulePage, RequestError> {
        let target = format!("/schedules?{}", query.to_query());
        ask(self.core(), Method::GET, &target, Vec::new()).await
    }

    /// Removes a schedule, and gives what it was. Nothing more of it is published.
    pub async fn unschedule(&self, id: &str) -> Result<PendingSchedule, RequestError> {
        let target = format!("/schedules/{}", percent_encoded(id));
        ask(self.core(), Method::DELETE, &target, Vec::new()).await
    }
}
