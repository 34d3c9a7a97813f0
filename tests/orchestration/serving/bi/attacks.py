"""What somebody might ask of a server that lets its clients do everything, to get out of the sandbox: SQL for both, Python for notebooks.

Many do something, but in the sandbox: what counts is that no answer holds a secret, that no file of the host changes, and that nobody
on the host is called.
"""

from dataclasses import dataclass
from pathlib import Path

FEW = (
    "select * from text.`{secret}`",
    "select * from text.`/proc/1/environ`",
    "select transform(1) using 'cat {secret} {conf}/pipeline.yml /etc/shadow /proc/*/environ' as (line string)",
    "select transform(1) using 'find / -xdev -size -64k -type f -not -path \"/usr/*\" -exec grep -hs secret {{}} +' as (line string)",
    "insert overwrite directory '{lake}/gold/stolen' using parquet select 1 as one",
    "create table default.mine using delta location '{lake}/gold/kitchen_aggregates'",
    "insert into default.mine select * from default.mine",
    "delete from delta.`{lake}/gold/kitchen_aggregates`",
    "vacuum delta.`{lake}/gold/kitchen_aggregates` retain 0 hours",
    "select transform(1) using 'touch {lake}/x; rm -rf {lake}/*; echo x > {outside}/x; chmod -R 777 {lake}' as (line string)",
    "select transform(1) using 'mount -o remount,rw {lake}; umount {lake}; touch {lake}/x' as (line string)",
    "select transform(1) using 'echo x > /dev/tcp/127.0.0.1/{port}; echo x > /dev/udp/127.0.0.1/{port}' as (line string)",
    "select transform(1) using 'kill -9 {process}' as (line string)",
    "select reflect('java.lang.System', 'getenv', 'SECRET')",
    "add jar '{secret}'",
)
MANY = (
    "select * from csv.`/etc/shadow`",
    "select * from text.`/etc/passwd`",
    "select * from text.`file:///etc/hostname`",
    "select * from binaryFile.`{secret}`",
    "select * from json.`{conf}`",
    "select * from text.`{conf}/pipeline.yml`",
    "select * from text.`{repository}/.git/HEAD`",
    "select * from text.`{repository}/Makefile`",
    "select * from text.`{repository}/conf/pipeline.yml`",
    "select * from binaryFile.`{home}`",
    "select * from binaryFile.`{home}/.ssh`",
    "select * from text.`{home}/.bashrc`",
    "select * from text.`{token}`",
    "select * from text.`/proc/self/environ`",
    "select * from text.`/proc/self/root/{secret}`",
    "select * from text.`/proc/1/root/{secret}`",
    "select * from text.`/proc/1/cwd/../{secret}`",
    "select * from text.`/proc/1/cmdline`",
    "select * from text.`/proc/kcore`",
    "select * from text.`/sys/class/net/eth0/address`",
    "select * from text.`{lake}/../secret`",
    "select * from read_files('{secret}')",
    "create temporary view stolen using text options (path '{secret}')",
    "select * from stolen",
    "add file '{secret}'",
    "list files",
    "set spark.sql.variable.substitute=true",
    "select '${{env:SECRET}}', '${{system:user.home}}', '${{spark:spark.driver.host}}'",
    "select java_method('java.lang.System', 'getenv', 'HOME')",
    "select java_method('java.nio.file.Files', 'readString', '{secret}')",
    "create temporary function evil as 'org.apache.hadoop.hive.ql.udf.UDFLike' using jar '{secret}'",
    "select transform(1) using 'ls -la {outside} {home} / /tmp /var /srv /mnt /media' as (line string)",
    "select transform(1) using 'ln -s {secret} /tmp/link; cat /tmp/link' as (line string)",
    "select transform(1) using 'cat /proc/*/fd/* < /dev/null & sleep 1; kill $!' as (line string)",
    "select transform(1) using 'unshare -Ur cat {secret}; unshare -m cat {secret}; chroot / cat {secret}' as (line string)",
    "select transform(1) using 'nsenter -t 1 -a cat {secret}; su -c id; sudo id; pkexec id' as (line string)",
    "select transform(1) using 'bwrap --bind / / cat {secret}' as (line string)",
    "select transform(1) using 'mknod /tmp/disk b 254 0; cat /tmp/disk; cat /dev/vda /dev/sda /dev/mem' as (line string)",
    "select transform(1) using 'echo core > /proc/sys/kernel/core_pattern; echo b > /proc/sysrq-trigger' as (line string)",
    "select transform(1) using 'curl -s http://127.0.0.1:{port}; wget -qO- http://127.0.0.1:{port}' as (line string)",
    "select transform(1) using 'curl -sm 2 http://169.254.169.254/; getent hosts example.org' as (line string)",
    "select * from csv.`http://127.0.0.1:{port}/x`",
    "create temporary view called using jdbc options (url 'jdbc:derby://127.0.0.1:{port}/x', dbtable 'x')",
    "insert into gold.kitchen_aggregates select * from gold.kitchen_aggregates",
    "insert overwrite directory '{outside}/stolen' using csv select * from bronze.events",
    "insert overwrite local directory '{outside}/stolen' select 1",
    "create table default.written using parquet location '{lake}/bronze/events' as select 1 as one",
    "create table default.outside using csv location '{outside}/table' as select 1 as one",
    "create database there location '{outside}/database'",
    "create table there.one using parquet as select 1 as one",
    "update delta.`{lake}/gold/kitchen_aggregates` set value = 0",
    "merge into delta.`{lake}/gold/kitchen_aggregates` as t using (select 1 as one) on true when matched then delete",
    "optimize delta.`{lake}/gold/kitchen_aggregates`",
    "restore table delta.`{lake}/gold/kitchen_aggregates` to version as of 0",
    "alter table delta.`{lake}/gold/kitchen_aggregates` set tblproperties ('delta.appendOnly' = 'true')",
    "generate symlink_format_manifest for table delta.`{lake}/gold/kitchen_aggregates`",
    "insert into parquet.`{lake}/gold/kitchen_aggregates` select 1",
    "truncate table default.mine",
    "drop table default.mine",
    "set spark.databricks.delta.retentionDurationCheck.enabled=false",
    "vacuum delta.`{lake}/bronze/events` retain 0 hours",
    "drop view gold.kitchen_aggregates",
    "drop database bronze cascade",
)

PROGRAMS = (
    """
import os, subprocess
answer = f"ran as {{os.getuid()}} " + subprocess.run("cat {secret} {conf}/* /etc/shadow", shell=True, capture_output=True, text=True).stdout
""",
    """
import os
answer = []
for folder, folders, files in os.walk("/"):
    folders[:] = [name for name in folders if name not in ("usr", "lib", "site-packages", "task", "map_files")]
    for name in files:
        path = os.path.join(folder, name)
        try:
            if os.path.isfile(path) and os.path.getsize(path) < 1 << 16 and not path.endswith("attacks.py"):
                answer.append(open(path, errors="replace").read())
        except OSError:
            pass
""",
    """
import socket
answer = []
for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"), (socket.AF_INET, "192.0.2.1"), (40, 2)):
    try:
        client = socket.socket(family)
        client.settimeout(1)
        client.connect((address, {port}))
        answer.append("called")
    except OSError as error:
        answer.append(str(error))
""",
    """
import os, shutil, signal
answer = []
for change in (
    lambda: open("{lake}/gold/new", "w"),
    lambda: shutil.rmtree("{lake}"),
    lambda: os.kill({process}, signal.SIGKILL),
    lambda: os.setuid(0),
    lambda: os.chroot("/"),
    lambda: os.mknod("/tmp/disk", 0o60600, 65024),
    lambda: open("/tmp/disk", "rb").read(64),
    lambda: os.open("/proc/1/root", os.O_RDONLY),
):
    try:
        answer.append(change())
    except Exception as error:
        answer.append(repr(error))
""",
    """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
calls = dict(mount=165, unshare=272, setns=308, ptrace=101, bpf=321, io_uring_setup=425, keyctl=250, open_tree=428, clone3=435)
answer = {{name: (libc.syscall(number, 0x10000000, 0, 0, 0, 0), os.strerror(ctypes.get_errno())) for name, number in calls.items()}}
""",
    """
import array, glob, os, socket, stat
answer = []
for link in glob.glob("/proc/[0-9]*/fd/*"):  # whatever the server holds open, taken and tried
    try:
        target = os.readlink(link)
        if target.startswith(("pipe:", "socket:", "/")) and "memfd" not in target:
            held = os.open(link, os.O_RDWR | os.O_NONBLOCK)
            answer.append((target, os.read(held, 100)))
    except OSError as error:
        answer.append(str(error))
""",
)


@dataclass(frozen=True)
class Host:
    """What an attack may be after. `port`: somebody listens there; `process`: an id."""

    folder: Path
    repository: Path
    port: int
    process: int

    def named(self, attack: str) -> str:
        """An attack that names it."""
        places = {
            "secret": self.folder / "secret",
            "conf": self.folder / "conf",
            "lake": self.folder / "lake",
            "token": self.folder / "token",
            "outside": self.folder,
            "repository": self.repository,
            "home": Path.home(),
        }
        return attack.format(**places, port=self.port, process=self.process)
