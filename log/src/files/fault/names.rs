//! The names in the folder: as they are, as they were last synced, and the changes in between.

use super::{Content, SharedContent, lock};
use prombus_store::conformance::Random;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

/// Sorted, so that a seed decides the same for the same files.
type Contents = BTreeMap<String, SharedContent>;

#[derive(Default)]
pub(super) struct Names {
    current: Contents,
    synced: Contents,
    /// What leads from `synced` to `current`.
    changes: Vec<Change>,
    /// Set by a failed sync: a folder's changes are kept in order, so what comes behind one of unknown fate is no
    /// safer than that one.
    stuck: bool,
}

enum Change {
    Create {
        name: String,
        content: SharedContent,
    },
    Rename {
        from: String,
        to: String,
    },
    Remove {
        name: String,
    },
}

impl Names {
    pub(super) fn list(&self) -> Vec<String> {
        self.current.keys().cloned().collect()
    }

    pub(super) fn get(&self, name: &str) -> io::Result<SharedContent> {
        let found = self.current.get(name).cloned();
        found.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// The new file, or the one of that name, emptied.
    pub(super) fn create(&mut self, name: &str) -> SharedContent {
        if let Some(content) = self.current.get(name) {
            lock(content).resize(0);
            return content.clone();
        }
        let content = SharedContent::default();
        self.change(Change::Create {
            name: name.to_owned(),
            content: content.clone(),
        });
        content
    }

    pub(super) fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        self.get(from)?;
        self.change(Change::Rename {
            from: from.to_owned(),
            to: to.to_owned(),
        });
        Ok(())
    }

    pub(super) fn remove(&mut self, name: &str) -> io::Result<()> {
        self.get(name)?;
        self.change(Change::Remove {
            name: name.to_owned(),
        });
        Ok(())
    }

    pub(super) fn sync(&mut self) {
        if !self.stuck {
            for change in self.changes.drain(..) {
                change.apply(&mut self.synced);
            }
        }
    }

    pub(super) fn fail_sync(&mut self) {
        self.stuck = true;
    }

    pub(super) fn is_in_doubt(&self) -> bool {
        self.stuck
    }

    pub(super) fn total_bytes(&self) -> u64 {
        let contents = self.current.values();
        contents
            .map(|content| lock(content).current().len() as u64)
            .sum()
    }

    /// The same files apart from these, with nothing unsynced.
    pub(super) fn copy(&self) -> Self {
        Self::synced(&self.current, |content| content.current().to_vec())
    }

    /// What the seed leaves.
    pub(super) fn after_power_loss(self, random: &mut Random) -> Self {
        let mut left = self.synced;
        let kept = random.index(self.changes.len() + 1);
        for change in &self.changes[..kept] {
            change.apply(&mut left);
        }
        Self::synced(&left, |content| content.after_power_loss(random))
    }

    fn synced(contents: &Contents, mut bytes: impl FnMut(&Content) -> Vec<u8>) -> Self {
        let contents = contents.iter().map(|(name, content)| {
            let content = Content::synced(bytes(&lock(content)));
            (name.clone(), Arc::new(Mutex::new(content)))
        });
        let synced: Contents = contents.collect();
        Self {
            current: synced.clone(),
            synced,
            ..Self::default()
        }
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.current);
        self.changes.push(change);
    }
}

impl Change {
    fn apply(&self, contents: &mut Contents) {
        match self {
            Self::Create { name, content } => {
                contents.insert(name.clone(), content.clone());
            }
            Self::Rename { from, to } => {
                if let Some(content) = contents.remove(from) {
                    contents.insert(to.clone(), content);
                }
            }
            Self::Remove { name } => {
                contents.remove(name);
            }
        }
    }
}
