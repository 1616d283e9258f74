"""Where programs and runtimes come from: Debian's packages, npm, Go toolchains, crates, wheels, pyenv and compilers."""
import json
import os
import shutil
import subprocess

from places import HERE, PROGRAMS, Missing, quiet


def prepare(row, place):
    """The row's command with `{program}` left open, its environment and its version."""
    cache = place.cache
    place.install(row["packages"])
    version = row["version"] or (place.version_of(row["packages"][0]) if row["packages"] else None)
    values = {"world": place.inside, "library": "", "arch": {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]}
    match row.get("from"):
        case "npm":
            folder = unpacked(cache, row["package"], version)
            version = json.loads((folder / "package.json").read_text())["version"]
            values["folder"] = str(folder)
        case "go":
            values["built"] = compiled_go(cache, version)
        case "cargo":
            values["built"] = compiled_rust(cache, row["package"], version, row["allocator"], row.get("features", []))
        case "java":
            compiled_java(cache)
        case "c":
            values["built"] = compiled_c(cache, row.get("compiler", "cc"), row.get("options", []))
        case "pyenv":
            values["folder"] = pyenv(version)
        case "pip":
            values["folder"] = pyenv(row["python"])
            values["wheels"] = wheels(cache, values["folder"], row["package"], version)
    if "library" in row:
        values["library"] = place.library(row["library"]) or ""
        if not values["library"]:
            raise Missing(f"no {row['library'][0]}")
    for word in row.get("prepare", []):
        quiet(place.enter(["sh", "-c", filled(word, values)]))
    environment = {name: filled(value, values) for name, value in row.get("environment", {}).items()}
    return [filled(word, values) for word in row["command"]], environment, version


def filled(text, values):
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    return text


def pyenv(version):
    """The folder of a Python that pyenv has built."""
    if not shutil.which("pyenv"):
        raise Missing("there is no pyenv")
    found = subprocess.run(["pyenv", "prefix", version], capture_output=True, text=True)
    if found.returncode:
        raise Missing(f"pyenv has no {version}")
    return found.stdout.strip()


def wheels(cache, python, package, version):
    """The folder of a package of this version with all that it needs, as wheels."""
    folder = cache / "built" / "wheels" / f"{package}-{version}"
    if not folder.exists():
        fresh = folder.with_name(f".{folder.name}")
        shutil.rmtree(fresh, ignore_errors=True)
        quiet([f"{python}/bin/python3", "-m", "pip", "install", "--quiet", "--only-binary", ":all:", "--target", fresh,
               f"{package}=={version}"])
        fresh.rename(folder)
    return str(folder)


def unpacked(cache, package, version):
    """The folder of an npm package, unpacked, and its exact version."""
    store = cache / "npm"
    store.mkdir(exist_ok=True)
    kept = store / f"{package.replace('/', '+')}@{version}"
    if not kept.exists():
        name = quiet(["npm", "pack", "--silent", f"{package}@{version}"], cwd=store).strip().splitlines()[-1]
        fresh = store / f".{kept.name}"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir()
        quiet(["tar", "-xzf", store / name, "-C", fresh])
        (store / name).unlink()
        fresh.rename(kept)
    return kept / "package"


def built(cache, name, make):
    """A file in the cache's folder of built programs, made once by `make(path)`."""
    file = cache / "built" / name
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh = file.with_name(f".{file.name}")
        make(fresh)
        fresh.rename(file)
    return file


def compiled_c(cache, compiler, options):
    """The C program."""
    name = "-".join([compiler, *options, "world"]).replace("/", "+")
    def make(path):
        if not shutil.which(compiler):
            raise Missing(f"there is no {compiler}")
        quiet([compiler, "-O1", "-pthread", *options, PROGRAMS / "world.c", "-o", path])
    return built(cache, name, make).name


def compiled_go(cache, version):
    """The Go program by this toolchain, which the go command takes from the module proxy."""
    def make(path):
        if not shutil.which("go"):
            raise Missing("there is no go")
        environment = {**os.environ, "GOTOOLCHAIN": f"go{version}", "GOFLAGS": "-mod=mod", "CGO_ENABLED": "0"}
        quiet(["go", "build", "-o", path, PROGRAMS / "world.go"], env=environment, cwd=cache)
    return built(cache, f"go-{version}", make).name


def compiled_rust(cache, crate, version, allocator, features):
    """The Rust program with this crate as its allocator."""
    def make(path):
        project = cache / "cargo" / f"{crate}-{version}"
        (project / "src").mkdir(parents=True, exist_ok=True)
        chosen = f"#[global_allocator]\nstatic GLOBAL: {allocator} = {allocator};\n"
        (project / "src/main.rs").write_text(chosen + (PROGRAMS / "world.rs").read_text())
        listed = ", ".join(f'"{one}"' for one in features)
        (project / "Cargo.toml").write_text(
            '[package]\nname = "world"\nversion = "0.1.0"\nedition = "2021"\n\n[dependencies]\n'
            f'{crate} = {{ version = "={version}", features = [{listed}] }}\n\n[profile.release]\nstrip = true\n[workspace]\n')
        quiet(["cargo", "build", "--release", "--quiet"], cwd=project)
        shutil.copy(project / "target/release/world", path)
        shutil.rmtree(project / "target")
    return built(cache, f"rust-{crate}-{version}", make).name


def compiled_java(cache):
    """The Java program, for any JDK since 11."""
    def make(path):
        if not shutil.which("javac"):
            raise Missing("there is no javac")
        quiet(["javac", "--release", "11", "-d", path, PROGRAMS / "World.java"])
    built(cache, "java", make)


def copy_programs(cache):
    """The programs that need no compiler, where all places see them."""
    shutil.copytree(PROGRAMS, cache / "built" / "programs", dirs_exist_ok=True)
