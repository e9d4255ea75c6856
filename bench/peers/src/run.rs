//! One run: every system in turns, row by row, and what is printed of it.

use crate::arguments::Arguments;
use crate::disk_probe::{fdatasync_millis, per_mille};
use crate::figures::Figures;
use crate::folder::{Folder, remove};
use crate::machine::Machine;
use crate::programs::Programs;
use crate::rows::{Metric, ROWS, Row};
use crate::scale::PeerScale;
use crate::stage::Stage;
use crate::systems::Flavour;
use crate::{Outcome, chart, limits, log_progress, print, report};
use std::process::Command;
use std::time::{Duration, Instant};
use tokio::signal::unix::{SignalKind, signal};

/// The machine's own sync, beside rows that wait for the disk.
const FDATASYNC: [Metric; 2] = [
    Metric::cost("fdatasync p99", "ms"),
    Metric::cost("fdatasync p99.9", "ms"),
];

/// Measures what is asked for and prints it.
pub(crate) fn measure(arguments: &Arguments) -> Outcome<()> {
    let (rows, with_limits) = chosen_rows(&arguments.rows)?;
    let mut run = Run::new(arguments)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?;
    for row in rows {
        let begun = Instant::now();
        // As a task of the runtime, as applications publish and consume, and not beside it.
        let work = async move {
            let measured = run.measure(row).await;
            (run, measured)
        };
        let measured;
        (run, measured) = runtime.block_on(async {
            tokio::select! {
                done = tokio::spawn(work) => Ok(done?),
                stopped = stop_signal() => Err(stopped),
            }
        })?;
        measured?;
        let seconds = begun.elapsed().as_secs_f64();
        let (name, what) = (row.name(), row.what());
        log_progress(&format!("row {name} took {seconds:.1} s: {what}"));
    }
    if with_limits {
        limits::measure(&run.scale, &mut run.folder, &mut run.figures)?;
    }
    run.figures.arrange();
    let machine = Machine::look(&run.programs);
    print(&report::to_tables(&run.figures, &machine))?;
    if let Some(path) = &arguments.json {
        let json = report::to_json(&run.figures, &machine);
        std::fs::write(path, serde_json::to_string_pretty(&json)?)?;
    }
    if let Some(path) = &arguments.svg {
        std::fs::write(path, chart::to_svg(&run.figures, &machine.to_string()))?;
    }
    Ok(())
}

/// One run: the only place where figures come from.
struct Run {
    flavours: Vec<Flavour>,
    programs: Programs,
    scale: PeerScale,
    folder: Folder,
    figures: Figures,
}

impl Run {
    fn new(arguments: &Arguments) -> Outcome<Self> {
        let mut scale = if arguments.quick {
            PeerScale::quick()
        } else {
            PeerScale::full()
        };
        scale.repeats = arguments.repeat.unwrap_or(scale.repeats);
        let seconds = arguments.seconds.map(Duration::from_secs);
        scale.sustained_time = seconds.unwrap_or(scale.sustained_time);
        let systems = &arguments.systems;
        let is_wanted = |flavour: &Flavour| {
            let is_meant = |system: &String| flavour.name().starts_with(system);
            let is_there = !flavour.is_before() || arguments.before.is_some();
            is_there && (systems.is_empty() || systems.iter().any(is_meant))
        };
        Ok(Self {
            flavours: Flavour::ALL.into_iter().filter(is_wanted).collect(),
            programs: Programs::find(
                arguments.prombus.as_deref(),
                arguments.before.as_deref(),
            )?,
            folder: Folder::make(arguments.folder.as_deref(), scale.disk_bytes)?,
            figures: Figures::default(),
            scale,
        })
    }

    /// Measures all systems in turns, after once for nothing. Each round begins with another one, so that none always
    /// follows the same.
    async fn measure(&mut self, row: &dyn Row) -> Outcome<()> {
        let mut stages = Vec::new();
        for flavour in row.flavours() {
            if self.flavours.contains(flavour) {
                stages.push(self.set(row, *flavour).await?);
            }
        }
        let count = stages.len();
        for round in 0..=self.scale.repeats {
            if round > 0 && row.waits_for_the_disk() {
                self.measure_disk(row)?;
            }
            for at in 0..count {
                let stage = &mut stages[(round + at) % count];
                // What others have left to be written is not to be written now.
                settle_disk()?;
                stage.system.process().resume()?;
                let measured = row.measure(stage, round).await;
                let values = measured.map_err(|error| failed(row, stage, &*error))?;
                stage.system.process().pause()?;
                if round > 0 {
                    let system = stage.flavour.name();
                    self.figures
                        .add(row.name(), system, row.metrics(), &values)?;
                }
            }
        }
        for stage in stages {
            let data = stage.folder.clone();
            drop(stage);
            remove(&data)?;
        }
        Ok(())
    }

    /// Measures the machine's own fdatasync while all systems are paused. What the worst of it is, nobody's worst can be
    /// better than.
    fn measure_disk(&mut self, row: &dyn Row) -> Outcome<()> {
        settle_disk()?;
        let path = self.folder.fresh("probe");
        let millis = fdatasync_millis(&path, self.scale.publish_time)?;
        let values = [per_mille(&millis, 990), per_mille(&millis, 999)];
        self.figures
            .add(row.name(), limits::MACHINE, &FDATASYNC, &values)
    }

    /// Starts a system, gives it what the row needs, and pauses it until its turn comes.
    async fn set(&mut self, row: &dyn Row, flavour: Flavour) -> Outcome<Stage> {
        let data = self.folder.fresh(&flavour.name().replace(' ', "-"));
        let mut stage = Stage::set(flavour, &self.programs, &self.scale, data).await?;
        let prepared = row.prepare(&mut stage).await;
        prepared.map_err(|error| failed(row, &stage, &*error))?;
        stage.system.process().pause()?;
        Ok(stage)
    }
}

fn failed(row: &dyn Row, stage: &Stage, error: &(dyn std::error::Error + Send + Sync)) -> String {
    format!("row {}, {}: {error}", row.name(), stage.flavour.name())
}

/// Waits for Ctrl-C or a request to end. What then goes away with the runtime takes servers and data with it; servers
/// that are paused would otherwise outlive this.
async fn stop_signal() -> Box<dyn std::error::Error + Send + Sync> {
    let mut request = match signal(SignalKind::terminate()) {
        Ok(request) => request,
        Err(error) => return error.into(),
    };
    tokio::select! {
        _ = request.recv() => "interrupted".into(),
        interrupt = tokio::signal::ctrl_c() => match interrupt {
            Ok(()) => "interrupted".into(),
            Err(error) => error.into(),
        },
    }
}

fn settle_disk() -> Outcome<()> {
    if Command::new("sync").status()?.success() {
        Ok(())
    } else {
        Err("the disk cannot be synced".into())
    }
}

/// The rows, and whether the limits of the machine are measured too.
fn chosen_rows(wanted: &[String]) -> Outcome<(Vec<&'static dyn Row>, bool)> {
    let is_wanted = |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name);
    let names = || ROWS.iter().map(|row| row.name()).chain([limits::ROW]);
    if let Some(unknown) = wanted
        .iter()
        .find(|wanted| !names().any(|name| name == *wanted))
    {
        let rows: Vec<String> = ROWS
            .iter()
            .map(|row| format!("{} ({})", row.name(), row.what()))
            .collect();
        return Err(format!(
            "there is no row {unknown}; there are: {}, {}",
            rows.join(", "),
            limits::ROW
        )
        .into());
    }
    let rows = ROWS
        .iter()
        .filter(|row| is_wanted(row.name()))
        .copied()
        .collect();
    Ok((rows, is_wanted(limits::ROW)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_chosen_by_their_letters() {
        let names = |wanted: &[&str]| -> Outcome<Vec<&str>> {
            let wanted: Vec<String> = wanted.iter().map(|name| (*name).to_owned()).collect();
            Ok(chosen_rows(&wanted)?
                .0
                .iter()
                .map(|row| row.name())
                .collect())
        };
        assert_eq!(names(&["d", "a"]).unwrap(), ["a", "d"]);
        assert_eq!(names(&[]).unwrap().len(), ROWS.len());
        assert_eq!(names(&["limits"]).unwrap(), Vec::<&str>::new());
        assert!(
            names(&["z"])
                .unwrap_err()
                .to_string()
                .starts_with("there is no row z; there are: a (")
        );
    }
}
