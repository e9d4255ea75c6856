//! Puts the files of the dashboard into the program: those of `web/dist`, which are checked in, so that building needs
//! no Node. They are compressed here, once, and their path names a hash of all of them.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// Stands in the page for the hash.
const VERSION_MARK: &str = "@VERSION@";

struct File {
    path: String,
    bytes: Vec<u8>,
}

fn main() -> io::Result<()> {
    let package = PathBuf::from(env::var("CARGO_MANIFEST_DIR").map_err(io::Error::other)?);
    let out = PathBuf::from(env::var("OUT_DIR").map_err(io::Error::other)?);
    let dist = dashboard_folder(&package)?;
    println!("cargo::rerun-if-changed={}", dist.display());
    let mut files = Vec::new();
    collect(&dist, "", &mut files)?;
    files.sort_by(|one, other| one.path.cmp(&other.path));
    let version = format!("{:016x}", hash(&files));
    println!("cargo::rustc-env=DASHBOARD_VERSION={version}");
    let mut code = format!("const VERSION: &str = {version:?};\n");
    let (page, assets): (Vec<File>, Vec<File>) = files
        .into_iter()
        .partition(|file| file.path == "index.html");
    let page = page.into_iter().next();
    let mut page = page.ok_or_else(|| io::Error::other("web/dist has no index.html"))?;
    let text = String::from_utf8(page.bytes).map_err(io::Error::other)?;
    page.bytes = text.replace(VERSION_MARK, &version).into_bytes();
    let entry = embed(&page, "page", &out)?;
    add(
        &mut code,
        &format!("const PAGE: Asset = {entry};\nconst ASSETS: &[Asset] = &["),
    )?;
    for (at, file) in assets.iter().enumerate() {
        let entry = embed(file, &format!("asset-{at}"), &out)?;
        add(&mut code, &format!("    {entry},"))?;
    }
    add(&mut code, "];")?;
    fs::write(out.join("dashboard_files.rs"), code)
}

/// The folder is where the page is made in the repository; in a package its files are in `dist`, which is a link to it.
fn dashboard_folder(package: &Path) -> io::Result<PathBuf> {
    let places = ["../web/dist", "dist"].map(|place| package.join(place));
    let found = places.into_iter().find(|place| place.is_dir());
    found.ok_or_else(|| io::Error::other("the files of the dashboard are not there"))
}

fn add(code: &mut String, line: &str) -> io::Result<()> {
    writeln!(code, "{line}").map_err(io::Error::other)
}

fn collect(folder: &Path, prefix: &str, files: &mut Vec<File>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            collect(&entry.path(), &format!("{path}/"), files)?
        } else {
            files.push(File {
                bytes: fs::read(entry.path())?,
                path,
            })
        }
    }
    Ok(())
}

/// Writes a file plain and compressed, and gives the code that includes both.
fn embed(file: &File, name: &str, out: &Path) -> io::Result<String> {
    let (plain, gzip) = (out.join(name), out.join(format!("{name}.gz")));
    fs::write(&plain, &file.bytes)?;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&file.bytes)?;
    fs::write(&gzip, encoder.finish()?)?;
    Ok(format!(
        "Asset {{ path: {:?}, content_type: {:?}, plain: include_bytes!({plain:?}), gzip: include_bytes!({gzip:?}) }}",
        file.path,
        content_type(&file.path),
    ))
}

fn content_type(path: &str) -> &'static str {
    match path.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    }
}

/// FNV-1a: it only has to differ where the files do.
fn hash(files: &[File]) -> u64 {
    let bytes = files.iter().flat_map(|file| {
        file.path
            .bytes()
            .chain([0])
            .chain(file.bytes.iter().copied())
    });
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
