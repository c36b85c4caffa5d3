//! Workers as jobs of a Slurm of this machine alone, in a folder of its own. It needs the superuser, and no `systemd`.

use std::path::Path;
use std::process::Command;

use super::Missing;
use super::daemon::{self, Daemon, free_port, wait_for, wait_for_port};
use super::jobs::Jobs;

const PROGRAMS: [&str; 7] = ["munged", "slurmctld", "slurmd", "srun", "sinfo", "squeue", "scancel"];

pub(crate) fn evaluate() -> Result<(), Missing> {
    let missing = PROGRAMS.iter().find(|name| daemon::program(name).is_none());
    if let Some(name) = missing {
        return Err(Missing(format!("{name} is missing: install slurm-wlm and munge")));
    }
    let is_root =
        std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    if !is_root {
        return Err(Missing("slurmd needs to be run by root".to_owned()));
    }
    let jobs = Jobs::new();
    let slurm = Slurm::start(&jobs);
    let environment = [("SLURM_CONF", slurm.config.as_path())];
    // Tasks of Slurm would otherwise only have the processors that are not in use.
    let template = format!("{} --quiet --ntasks=1 --oversubscribe {{worker}}", Slurm::path("srun"));
    jobs.check(&template, &environment);
    jobs.check_second_try(&template, &environment, |_| slurm.cancel());
    Ok(())
}

struct Slurm {
    config: std::path::PathBuf,
    _daemons: [Daemon; 3],
}

impl Slurm {
    fn start(jobs: &Jobs) -> Self {
        let folder = jobs.path().join("slurm");
        for name in ["", "state", "spool"] {
            std::fs::create_dir(folder.join(name)).unwrap();
        }
        let (control, node) = (free_port(), free_port());
        let config = folder.join("slurm.conf");
        std::fs::write(&config, configuration(&folder, control, node)).unwrap();
        std::fs::write(folder.join("key"), "a key of at least thirty-two bytes, for this test alone")
            .unwrap();
        restrict(&folder.join("key"));
        let in_folder = |option: &str, name: &str| format!("{option}={}", folder.join(name).display());
        let munged =
            Daemon::start(Command::new(Self::path("munged")).args(["--foreground", "--force"]).args([
                in_folder("--key-file", "key"),
                in_folder("--socket", "munge.socket"),
                in_folder("--pid-file", "munged.pid"),
                in_folder("--log-file", "munged.log"),
                in_folder("--seed-file", "munge.seed"),
            ]));
        wait_for("munged", || folder.join("munge.socket").exists());
        let daemon =
            |name| Daemon::start(Command::new(Self::path(name)).arg("-D").env("SLURM_CONF", &config));
        let controller = daemon("slurmctld");
        wait_for_port(control);
        let node = daemon("slurmd");
        let slurm = Self { config, _daemons: [node, controller, munged] };
        wait_for("an idle node", || slurm.run("sinfo", &["--noheader", "--format=%t"]).trim() == "idle");
        slurm
    }

    fn path(name: &str) -> String {
        daemon::program(name).unwrap_or_default()
    }

    fn run(&self, name: &str, arguments: &[&str]) -> String {
        let output = Command::new(Self::path(name)).args(arguments).env("SLURM_CONF", &self.config).output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    }

    /// Cancels all jobs, as a scheduler that preempts them.
    fn cancel(&self) {
        let jobs = self.run("squeue", &["--noheader", "--states=RUNNING", "--format=%i"]);
        let jobs: Vec<&str> = jobs.split_whitespace().collect();
        assert_eq!(jobs.len(), 1, "{jobs:?}");
        self.run("scancel", &jobs);
    }
}

fn configuration(folder: &Path, control: u16, node: u16) -> String {
    let path = folder.display();
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let host = host.trim().split('.').next().unwrap_or_default();
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    format!(
        "ClusterName=test\nSlurmctldHost={host}(127.0.0.1)\nSlurmUser=root\nSlurmdUser=root\n\
         AuthType=auth/munge\nAuthInfo=socket={path}/munge.socket\nCryptoType=crypto/munge\n\
         SlurmctldPort={control}\nSlurmdPort={node}\nStateSaveLocation={path}/state\nSlurmdSpoolDir={path}/spool\n\
         SlurmctldPidFile={path}/slurmctld.pid\nSlurmdPidFile={path}/slurmd.pid\nSlurmctldLogFile={path}/slurmctld.log\n\
         SlurmdLogFile={path}/slurmd.log\nProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nMpiDefault=none\n\
         ReturnToService=2\nSelectType=select/cons_tres\nSelectTypeParameters=CR_Core\n\
         NodeName={host} NodeAddr=127.0.0.1 CPUs={processors} State=UNKNOWN\n\
         PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:4\n"
    )
}

/// Makes a file its owner's alone, as munged demands of its key.
fn restrict(path: &Path) {
    let owner_only = std::os::unix::fs::PermissionsExt::from_mode(0o400);
    std::fs::set_permissions(path, owner_only).unwrap();
}
