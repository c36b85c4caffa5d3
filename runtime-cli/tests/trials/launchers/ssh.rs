//! Workers behind `ssh` to this machine: a server on a free port, with keys of its own.

use std::process::Command;

use super::Missing;
use super::daemon::{self, Daemon, free_port, wait_for_port};
use super::jobs::Jobs;

pub(crate) fn evaluate() -> Result<(), Missing> {
    let programs = (daemon::program("sshd"), daemon::program("ssh"), daemon::program("ssh-keygen"));
    let (Some(server), Some(client), Some(keygen)) = programs else {
        return Err(Missing("ssh is missing: install openssh-server and openssh-client".to_owned()));
    };
    let jobs = Jobs::new();
    let folder = jobs.path().join("ssh");
    std::fs::create_dir(&folder).unwrap();
    for key in ["host", "user"] {
        let mut command = Command::new(&keygen);
        command.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(folder.join(key));
        assert!(command.status().unwrap().success());
    }
    let port = free_port();
    let path = folder.display();
    let config = format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey {path}/host\nAuthorizedKeysFile {path}/user.pub\n\
         PidFile none\nUsePAM no\nStrictModes no\nPermitRootLogin yes\nPasswordAuthentication no\n"
    );
    std::fs::write(folder.join("config"), config).unwrap();
    // Needed by a server of the superuser only, and made by its package's service.
    let _ = std::fs::create_dir("/run/sshd");
    let _server = Daemon::start(Command::new(&server).args(["-D", "-f"]).arg(folder.join("config")));
    wait_for_port(port);
    let options = "-F none -o BatchMode=yes -o StrictHostKeyChecking=no -o LogLevel=ERROR -o UserKnownHostsFile=/dev/null";
    let template = format!(
        "{client} {options} -i {path}/user -p {port} 127.0.0.1 'echo banner; exec env {} {{worker}}'",
        jobs.environment()
    );
    jobs.check(&template, &[]);
    jobs.check_second_try(&template, &[], Jobs::kill_workers);
    Ok(())
}
