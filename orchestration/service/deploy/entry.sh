#!/bin/bash
# What a container runs: Spark's executor, where a driver on Kubernetes made its pod; `tidemark` otherwise.
set -euo pipefail
environment=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)/.venv
[[ ${1:-} == executor ]] || exec "$environment/bin/tidemark" "$@"

# The driver says all this by variables; options of the JVM are numbered.
options=()
for name in $(compgen -v SPARK_JAVA_OPT_ | sort --field-separator=_ --key=4 --numeric-sort); do
    options+=("${!name}")
done
jars=$(echo "$environment"/lib/python3*/site-packages/pyspark/jars)
exec "${JAVA_HOME:+$JAVA_HOME/bin/}java" "${options[@]}" "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
    -cp "${SPARK_CONF_DIR:+$SPARK_CONF_DIR:}$jars/*" \
    org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
    --driver-url "$SPARK_DRIVER_URL" --app-id "$SPARK_APPLICATION_ID" --executor-id "$SPARK_EXECUTOR_ID" \
    --cores "$SPARK_EXECUTOR_CORES" --hostname "$SPARK_EXECUTOR_POD_IP" --podName "$SPARK_EXECUTOR_POD_NAME" \
    --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID"
