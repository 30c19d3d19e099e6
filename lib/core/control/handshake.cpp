#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <tuple>
#include <utility>

#include "base/random.hpp"
#include "base/system_error.hpp"
#include "control/connection.hpp"
#include "control/plane.hpp"
#include "control/same_host.hpp"
#include "control/sockets.hpp"

namespace weft::core {
namespace {

/// The answer to a browser that is pointed at the port.
constexpr std::string_view hint_for_strangers =
    "This port speaks Weft's control protocol only.\r\n";

Blob blob_of(std::string_view text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return Blob(begin, begin + text.size());
}

HostPass new_pass() {
  const std::array<std::uint64_t, 2> random{random_u64(), random_u64()};
  return std::bit_cast<HostPass>(random);
}

auto rank(const Introduction& who) {
  return std::tie(who.name, who.incarnation);
}

}  // namespace

Connection::Connection(ControlPlane& plane, LinkId id, asio::ip::tcp::socket socket,
                       AttemptPtr attempt)
    : Wire(std::move(socket), plane.new_tls(attempt.get()), plane.tuning().queue_bound),
      id(id),
      initiated(attempt != nullptr),
      self(plane.introduction()),
      pass(new_pass()),
      plane_(plane),
      limit_(plane.context()) {
  if (attempt) attempts.push_back(std::move(attempt));
}

void Connection::start() {
  limit(plane_.config().handshake_time);
  doing("waiting for it to prove itself by TLS");
  open();
}

void Connection::tell(const ControlMessage& message) {
  Result<Blob> frame = encode(message);
  if (frame)
    write(std::move(*frame));
  else
    plane_.trouble(frame.error());
}

void Connection::retire(const std::optional<ControlMessage>& last) {
  const bool greeted = stage > Stage::greeting;
  stage = Stage::over;
  limit_.cancel();
  asking_.reset();
  watched_.reset();
  if (last && greeted) tell(*last);
  finish(plane_.tuning().linger);
}

void Connection::limit(Nanoseconds time) {
  limit_.expires_after(time);
  limit_.async_wait([this, self = shared(), time](const std::error_code& cancelled) {
    const bool settled = stage == Stage::up || stage == Stage::over;
    if (cancelled || settled || limit_.expiry() > Clock::now()) return;
    const double seconds = std::chrono::duration<double>(time).count();
    const char* what = stage == Stage::securing   ? "did not finish the TLS handshake"
                       : stage == Stage::greeting ? "did not say a word"
                                                  : "did not finish meeting";
    plane_.end(self, LinkEnd::late,
               Error(Code::timed_out, fmt::format("{} {} within {:.1f} s", who(), what, seconds)),
               Goodbye{"the other side took too long to meet"});
  });
}

bool Connection::is_chooser() const noexcept {
  return rank(self) < rank(peer);
}

std::string Connection::who() const {
  return peer.name.empty() ? remote() : fmt::format("peer '{}' at {}", peer.name, remote());
}

void Connection::doing(const char* what) {
  for (const AttemptPtr& attempt : attempts) attempt->doing(what);
}

// Incoming bytes.

void Connection::on_open() {
  stage = Stage::greeting;
  doing("waiting for its first word");
  if (!initiated) return;
  const Preamble preamble = write_preamble(plane_.tuning().versions);
  write(Blob(preamble.begin(), preamble.end()));
}

void Connection::on_preamble(VersionRange versions) {
  peer_versions_ = versions;
  const VersionRange ours = plane_.tuning().versions;
  if (!initiated) {
    const Preamble preamble = write_preamble(ours);
    write(Blob(preamble.begin(), preamble.end()));
  }
  if (!agree(ours, versions))
    return plane_.end(shared(), LinkEnd::version,
                      Error(Code::protocol_mismatch,
                            fmt::format("{} speaks {} of Weft's protocol, this engine {}", remote(),
                                        to_string(versions), to_string(ours))),
                      std::nullopt);
  stage = Stage::introducing;
  doing("waiting for it to introduce itself");
  tell(Hello{self, plane_.host_claim(pass)});
}

void Connection::on_frame(Bytes frame) {
  if (stage == Stage::over) return;
  const auto now = Clock::now();
  pulse.heard(now);
  if (health == Health::silent) note_health(now);
  Result<ControlMessage> message = decode(frame);
  if (!message) return on_lost(LinkEnd::violation, message.error());
  std::visit([this](auto& content) { take(std::move(content)); }, *message);
}

void Connection::on_lost(LinkEnd how, Error why) {
  if (stage == Stage::over) return;
  const bool gone = why.code() == Code::peer_down;
  if (stage == Stage::securing && gone)
    why = Error(Code::unavailable,
                fmt::format("{} closed the connection in the middle of the TLS handshake: it is no "
                            "Weft engine, or turns connections away",
                            remote()));
  if (stage == Stage::greeting && gone)
    why = Error(Code::unavailable, fmt::format("{} closed the connection without a word: it is no "
                                               "Weft engine, or turns connections away",
                                               remote()));
  if (stage == Stage::greeting && !gone && !initiated) write(blob_of(hint_for_strangers));
  plane_.end(shared(), how, why, Goodbye{why.message()});
}

void Connection::on_closed() {
  limit_.cancel();
  plane_.closed(shared());
}

/// By a message that was decoded well.
void Connection::breaks_protocol(std::string what) {
  on_lost(LinkEnd::violation, Error(Code::protocol_mismatch, std::move(what)));
}

bool Connection::expect(Stage wanted, const char* what) {
  if (stage != wanted) out_of_turn(what);
  return stage == wanted;
}

void Connection::out_of_turn(const char* what) {
  breaks_protocol(fmt::format("{} sent {} out of turn", who(), what));
}

void Connection::take(const Hello& hello) {
  if (!expect(Stage::introducing, "an introduction")) return;
  peer = hello.introduction;
  if (rank(self) == rank(peer))
    return plane_.end(shared(), LinkEnd::itself,
                      Error(Code::invalid_argument,
                            fmt::format("{} is this engine ('{}') itself", remote(), self.name)),
                      Goodbye{"an engine does not connect to itself"});
  stage = Stage::proving;
  prove(hello.host);
}

/// By what both see in /proc, or else by the peer's socket.
void Connection::prove(const HostClaim& claim) {
  const std::string& own_boot = boot_id();
  near.one_host = !claim.boot.empty() && claim.boot == own_boot;
  // One that sees no /proc knows of no boot.
  const bool apart = !near.one_host && !claim.boot.empty() && !own_boot.empty();
  Proof proof = prove_same_host(claim, peer.incarnation);
  if (proof.proven) peer.pid = static_cast<std::int32_t>(claim.pid);
  if (proof.proven || apart) return proved(std::move(proof));
  ask_for_proof(claim);
}

void Connection::ask_for_proof(const HostClaim& claim) {
  const HostPeer host{claim.socket, plane_.config().host_dir, claim.pass};
  if (claim.socket.empty())
    return answered(host, fail(Code::unavailable, "the peer has no socket"));
  auto socket = ask(host, {});
  if (!socket) return answered(host, fail(std::move(socket.error())));
  asking_ = std::make_unique<Asking>(plane_.context());
  if (const auto error = hand_over(std::move(*socket), asking_->socket))
    return answered(host, fail(system_error(std::system_error(error))));
  asking_->socket.async_wait(asio::posix::stream_descriptor::wait_read,
                             [this, self = shared(), host](const std::error_code& error) {
                               if (!error && asking_)
                                 answered(host, receive_answer(asking_->socket.native_handle()));
                             });
  asking_->limit.expires_after(host_answer_time);
  asking_->limit.async_wait([this, self = shared(), host](const std::error_code& cancelled) {
    if (!cancelled && asking_) answered(host, fail(Code::timed_out, "its socket does not answer"));
  });
}

void Connection::answered(const HostPeer& host, Result<Answered> answer) {
  asking_.reset();
  near.one_host = near.one_host || answer.has_value();
  Proof proof;
  auto process =
      answer.and_then([&](const Answered& known) { return process_by_socket(host, known); });
  if (process) {
    near.process = std::move(*process);
    proof.proven = true;
    proof.nonce = answer->nonce;
  } else {
    proof.reason = fmt::format("{}: {}",
                               near.one_host ? "both are on this host, but share no memory"
                                             : "another host, or one of the two has no /proc",
                               process.error().message());
  }
  proved(std::move(proof));
}

void Connection::proved(Proof proof) {
  proof_ = std::move(proof);
  tell(*proof_);
  if (peer_proof_) prove_done();
}

void Connection::take(Proof proof) {
  if (!expect(Stage::proving, "a proof")) return;
  if (peer_proof_) return out_of_turn("a second proof");
  peer_proof_ = std::move(proof);
  if (proof_) prove_done();
}

void Connection::prove_done() {
  const bool proven_there = plane_.proven_by(*peer_proof_);
  near.same_host = proof_->proven && proven_there;
  near.one_host = near.one_host || proof_->proven || proven_there;
  if (!near.same_host) near.process = nullptr;
  if (!proof_->proven)
    near.reason = proof_->reason;
  else if (!near.same_host)
    near.reason = peer_proof_->proven ? "the peer's proof is wrong"
                                      : "seen by the peer: " + peer_proof_->reason;
  if (near.process != nullptr)
    watch(near.process->watch());
  else if (near.same_host && peer.pid != getpid())
    watch(Process::of(peer.pid));
  stage = Stage::choosing;
  doing("waiting for it to agree on a link");
  if (is_chooser()) plane_.choose(shared());
}

void Connection::take(const Choice&) {
  if (!expect(Stage::choosing, "a choice")) return;
  plane_.adopt(shared());
}

void Connection::take(const Duplicate& duplicate) {
  if (!expect(Stage::choosing, "a choice")) return;
  plane_.is_duplicate(shared(), duplicate.token);
}

void Connection::take(const Lost&) {
  if (!expect(Stage::duplicate, "a loss")) return;
  tell(Choice{});
  plane_.adopt(shared());
}

void Connection::take(Ready ready) {
  if (!expect(Stage::meeting, "a readiness")) return;
  if (peer_out) return out_of_turn("a second readiness");
  for (const RailOut& each : ready.out)
    if (each.rail >= peer.rails.size() || !peer.rails[each.rail].why_out.empty())
      return breaks_protocol(fmt::format("{} has no rail {} to leave out", who(), each.rail));
  peer_out = std::move(ready.out);
  plane_.agree(shared());
}

void Connection::take(const Refusal& refusal) {
  plane_.end(shared(), LinkEnd::goodbye,
             Error(refusal.code, fmt::format("{} refused: {}", who(), refusal.reason)),
             std::nullopt);
}

void Connection::take(const Heartbeat& heartbeat) {
  if (!chosen()) return breaks_protocol(who() + " sent a heartbeat too soon");
  late_threads = !heartbeat.progressing;
  note_health(Clock::now());
}

void Connection::take(const Goodbye& goodbye) {
  // The other side did not need a connection that this side accepted: no reason to report it.
  const Code code = initiated || chosen() ? Code::peer_down : Code::cancelled;
  if (stage == Stage::up) plane_.leaving(id, goodbye.taken);
  plane_.end(shared(), LinkEnd::goodbye,
             Error(code, fmt::format("{} said goodbye: {}", who(), goodbye.reason)), std::nullopt);
}

void Connection::take(Notice notice) {
  if (expect(Stage::up, "a notice")) plane_.received(id, std::move(notice));
}

void Connection::take(const UnknownMessage&) {
  if (peer_versions_.newest <= plane_.tuning().versions.newest)
    breaks_protocol(who() + " sent a message of an unknown kind");
}

}  // namespace weft::core
