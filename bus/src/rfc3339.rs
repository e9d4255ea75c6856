//! Times as people read them, in sentences.

const DAY_MS: u64 = 86_400_000;
/// The days of four hundred years, after which the calendar repeats itself.
const ERA_DAYS: u64 = 146_097;
/// From the first of March of the year 0, where an era begins, to 1970.
const DAYS_TO_1970: u64 = 719_468;

/// Epoch milliseconds as RFC 3339 in UTC.
pub(crate) fn rfc3339(epoch_ms: u64) -> String {
    let days = epoch_ms / DAY_MS + DAYS_TO_1970;
    let (era, day_of_era) = (days / ERA_DAYS, days % ERA_DAYS);
    let leap_days = day_of_era / 1_460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap_days) / 365;
    // A year that begins in March has its leap day at the end.
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let ms = epoch_ms % DAY_MS;
    let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::rfc3339;

    #[test]
    fn the_calendar_is_right() {
        for (epoch_ms, shown) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399_999, "2000-02-28T23:59:59Z"),
            (951_782_400_000, "2000-02-29T00:00:00Z"),
            (951_868_800_000, "2000-03-01T00:00:00Z"),
            (1_735_689_599_000, "2024-12-31T23:59:59Z"),
            (1_763_424_000_000, "2025-11-18T00:00:00Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(rfc3339(epoch_ms), shown);
        }
    }
}
