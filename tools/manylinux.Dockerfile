# Wheels for Linux with glibc 2.28 or newer, of x86-64, or of aarch64 on such a machine. From the
# root of a clone:
#
#   docker build --file tools/manylinux.Dockerfile --output build/wheels --build-arg BASE=IMAGE .
#
# IMAGE: PyPA's manylinux_2_28 for the processor. It was linted, and has not been built or run yet.
ARG BASE

FROM ${BASE} AS build
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
# hadolint ignore=DL3041
RUN dnf install --assumeyes perl-core && dnf clean all
ARG OPENSSL=3.0.16 HWLOC=2.9.3 LIBFABRIC=2.1.0
ARG GITHUB=https://github.com
ENV PKG_CONFIG_PATH=/usr/local/lib64/pkgconfig:/usr/local/lib/pkgconfig \
    LD_LIBRARY_PATH=/usr/local/lib64:/usr/local/lib

# The system's OpenSSL is older than 3. Certificates and settings are the system's.
WORKDIR /tmp/openssl
RUN curl --fail --silent --show-error --location \
      "$GITHUB/openssl/openssl/releases/download/openssl-$OPENSSL/openssl-$OPENSSL.tar.gz" | \
      tar --extract --gzip --strip-components 1 && \
    ./Configure shared no-tests --openssldir=/etc/pki/tls && \
    make --jobs "$(nproc)" && make install_sw

# Only what lies in the machine itself: no drawing, no plug-ins, no library of a GPU.
WORKDIR /tmp/hwloc
RUN curl --fail --silent --show-error --location \
      "https://download.open-mpi.org/release/hwloc/v${HWLOC%.*}/hwloc-$HWLOC.tar.gz" | \
      tar --extract --gzip --strip-components 1 && \
    ./configure --disable-cairo --disable-libxml2 --disable-libudev --disable-opencl \
      --disable-cuda --disable-nvml --disable-rsmi --disable-levelzero --disable-gl && \
    make --jobs "$(nproc)" && make install

# For its headers. The wheel does not have it.
WORKDIR /tmp/libfabric
RUN curl --fail --silent --show-error --location \
      "$GITHUB/ofiwg/libfabric/releases/download/v$LIBFABRIC/libfabric-$LIBFABRIC.tar.bz2" | \
      tar --extract --bzip2 --strip-components 1 && \
    ./configure --disable-verbs --disable-efa --disable-psm2 --disable-psm3 --disable-opx && \
    make --jobs "$(nproc)" && make install

# All else comes from subprojects/.
COPY . /weft
WORKDIR /weft
RUN git config --global --add safe.directory /weft && \
    tools/wheel --no-setup --python /opt/python/cp311-cp311/bin/python \
      --python /opt/python/cp312-cp312/bin/python
RUN tools/wheel --test --python /opt/python/cp311-cp311/bin/python \
      --python /opt/python/cp312-cp312/bin/python --python /opt/python/cp313-cp313/bin/python

FROM scratch
COPY --from=build /weft/build/wheels/ /
