//! The live view of `top`: two tables that are drawn anew with each sample.

use super::sample::{GroupState, Rates, Sample};
use crate::remote::Remote;
use crate::{escape, size};
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Block, Cell, Row, Table};
use std::time::{Duration, Instant};

/// What is on the screen.
struct View<'a> {
    url: &'a str,
    rates: Rates,
    /// Why the last sample failed, where it did.
    error: Option<String>,
}

/// Draws until `q`, Esc or Ctrl-C. A server that goes away is asked again.
#[allow(
    clippy::disallowed_methods,
    reason = "the view waits for keys or for the next sample, in real time"
)]
pub(super) fn run(remote: &Remote, interval: Duration) -> anyhow::Result<()> {
    // Before the screen is taken: a server that is not there is an ordinary error.
    let mut before = Sample::take(remote)?;
    let mut view = View {
        url: remote.url(),
        rates: Rates::between(&before, &before),
        error: None,
    };
    let mut terminal = ratatui::try_init()?;
    let outcome = (|| {
        loop {
            terminal.draw(|frame| view.draw(frame))?;
            let next = Instant::now() + interval;
            while let Some(left) = next.checked_duration_since(Instant::now()) {
                if event::poll(left)? && is_quit(&event::read()?) {
                    return Ok(());
                }
            }
            match Sample::take(remote) {
                Ok(now) => {
                    view.rates = Rates::between(&before, &now);
                    view.error = None;
                    before = now;
                }
                Err(error) => view.error = Some(format!("{error:#}")),
            }
        }
    })();
    ratatui::restore();
    outcome
}

fn is_quit(event: &Event) -> bool {
    let Event::Key(key) = event else { return false };
    let is_interrupt =
        key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    key.kind == KeyEventKind::Press
        && (is_interrupt || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc))
}

impl View<'_> {
    fn draw(&self, frame: &mut Frame<'_>) {
        let areas = Layout::vertical([
            Constraint::Length(1),
            Constraint::Percentage(45),
            Constraint::Fill(1),
            Constraint::Length(1),
        ]);
        let [title, topics, groups, footer] = areas.areas(frame.area());
        let total: f64 = self.rates.topics.iter().map(|topic| topic.per_second).sum();
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let headline = format!(
            "prombus top  {}  {total:.0} events/s in, {} topics, {} groups",
            self.url,
            self.rates.topics.len(),
            self.rates.groups.len()
        );
        frame.render_widget(Line::styled(headline, bold), title);
        frame.render_widget(self.topics(), topics);
        frame.render_widget(self.groups(), groups);
        let footer_line = match &self.error {
            Some(error) => {
                let text = escape::controls(error).into_owned();
                Line::styled(text, Style::new().fg(Color::Red))
            }
            None if self.rates.left_out > 0 => Line::raw(format!(
                "q quits; groups of {} topics are left out",
                self.rates.left_out
            )),
            None => Line::raw("q quits"),
        };
        frame.render_widget(footer_line, footer);
    }

    fn topics(&self) -> Table<'_> {
        let rows = self.rates.topics.iter().map(|topic| {
            Row::new([
                text(&topic.name),
                Cell::from(format!("{:.1}", topic.per_second)),
                Cell::from(topic.events.to_string()),
                Cell::from(size::show(topic.bytes)),
            ])
        });
        let widths = [
            Constraint::Fill(1),
            Constraint::Length(12),
            Constraint::Length(14),
            Constraint::Length(12),
        ];
        Table::new(rows, widths)
            .header(header(["topic", "in/s", "events", "size"]))
            .block(Block::bordered().title("topics"))
    }

    fn groups(&self) -> Table<'_> {
        let rows = self.rates.groups.iter().map(|group| {
            let colour = match group.state {
                GroupState::CaughtUp => Color::Green,
                GroupState::Flowing => Color::Reset,
                GroupState::Stuck => Color::Red,
                GroupState::NoMembers => Color::Yellow,
            };
            Row::new([
                text(&group.topic),
                text(&group.name),
                Cell::from(format!("{:.1}", group.per_second)),
                Cell::from(group.lag.to_string()),
                Cell::from(group.in_flight.to_string()),
                Cell::from(group.members.to_string()),
                Cell::from(group.state.as_str()).style(Style::new().fg(colour)),
            ])
        });
        let widths = [
            Constraint::Fill(1),
            Constraint::Fill(1),
            Constraint::Length(10),
            Constraint::Length(12),
            Constraint::Length(10),
            Constraint::Length(8),
            Constraint::Length(10),
        ];
        let names = [
            "topic",
            "group",
            "acked/s",
            "lag",
            "in flight",
            "members",
            "state",
        ];
        Table::new(rows, widths)
            .header(header(names))
            .block(Block::bordered().title("groups"))
    }
}

fn text(name: &str) -> Cell<'static> {
    Cell::from(escape::controls(name).into_owned())
}

fn header<const N: usize>(names: [&'static str; N]) -> Row<'static> {
    Row::new(names).style(Style::new().add_modifier(Modifier::BOLD))
}
