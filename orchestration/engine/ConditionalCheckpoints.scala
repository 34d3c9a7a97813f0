package tidemark

import java.io.{ByteArrayOutputStream, FileNotFoundException, IOException}
import java.util.Arrays

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{FileAlreadyExistsException, FileStatus, FileSystem, FSDataOutputStream, Path, PathFilter}
import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager.CancellableFSDataOutputStream
import org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager

/** Files of checkpoints in an object store. They are written under their own names: an object appears when it is whole. */
class ConditionalCheckpoints(path: Path, conf: Configuration) extends FileSystemBasedCheckpointFileManager(path, conf) {
  override def createAtomic(path: Path, overwriteIfPossible: Boolean): CancellableFSDataOutputStream =
    if (overwriteIfPossible) new Replacing(fs, path) else new Creating(fs, path, new ByteArrayOutputStream)

  // A store has no folders: none is made, and those of a checkpoint are not asked for. An empty one is one without files.
  override def mkdirs(path: Path): Unit = ()

  override def exists(path: Path): Boolean = folders(path.getName) || super.exists(path)

  override def list(path: Path, filter: PathFilter): Array[FileStatus] =
    try super.list(path, filter)
    catch { case _: FileNotFoundException => Array.empty }

  private val folders = Set("offsets", "commits", "state", "_metadata")
}

/** State: what a batch leaves is the same whoever runs it, as the batch itself is created once. */
private class Replacing(fs: FileSystem, path: Path)
    extends CancellableFSDataOutputStream(
      fs.createFile(path).recursive().overwrite(true).opt("fs.s3a.create.performance", true).build()) {
  override def cancel(): Unit = {
    underlyingStream.asInstanceOf[FSDataOutputStream].abort()
    close()
  }
}

/** Offsets, commits, metadata: small files, created by whoever comes first. The store decides, however late a request arrives. */
private class Creating(fs: FileSystem, path: Path, content: ByteArrayOutputStream) extends CancellableFSDataOutputStream(content) {
  private var isEnded = false

  override def cancel(): Unit = isEnded = true

  override def close(): Unit = if (!isEnded) {
    isEnded = true
    try create()
    catch {
      // Of a request that was done the answer may be lost: its repetition then meets what it wrote itself.
      case error: IOException => if (!fs.exists(path)) throw error else if (!isMine) throw anothers(error)
    }
  }

  private def create(): Unit = {
    val out = fs.createFile(path).recursive().overwrite(true).must("fs.option.create.conditional.overwrite", true).build()
    try out.write(content.toByteArray)
    finally out.close()
  }

  private def isMine: Boolean = {
    val in = fs.open(path)
    try Arrays.equals(in.readAllBytes(), content.toByteArray)
    finally in.close()
  }

  private def anothers(error: IOException): IOException = {
    val refused = new FileAlreadyExistsException(s"$path was written by another process")
    refused.initCause(error)
    refused
  }
}
