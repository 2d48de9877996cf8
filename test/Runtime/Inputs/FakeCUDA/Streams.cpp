//===- Streams.cpp - Streams, events and graphs of the fake driver --------===//
//
// Part of the Varlen project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "State.h"

using namespace fake_cuda;

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

/// CU_STREAM_LEGACY is 1. CU_STREAM_PER_THREAD, 2, is not supported.
static bool isLegacy(const void *handle) {
  return reinterpret_cast<uintptr_t>(handle) <= 1;
}

static Stream *makeStream(Context &context, bool isBlocking) {
  State &state = getState();
  state.streams.push_back(std::make_unique<Stream>());
  Stream *stream = state.streams.back().get();
  stream->context = &context;
  stream->isBlocking = isBlocking;
  return stream;
}

static void invalidate(Stream &stream) {
  if (stream.capture)
    stream.capture->isValid = false;
}

/// The legacy stream of the current context. Null with `error` set.
static Stream *getLegacy(Call &call, Result &error) {
  Context *context = getCurrent();
  if (!context) {
    error = call.refuse(InvalidContext, "no context is current");
    return nullptr;
  }
  // It would depend on every blocking stream that is captured.
  for (const auto &stream : getState().streams)
    if (stream->context == context && stream->isBlocking && stream->capture) {
      error = call.refuse(CaptureImplicit, "a blocking stream is captured");
      return nullptr;
    }
  ++getState().counts.defaultStream;
  if (!context->legacy) {
    context->legacy = makeStream(*context, false);
    context->legacy->isLegacy = true;
    context->legacy->isAlive = false; // no handle of its own
  }
  return context->legacy;
}

Stream *fake_cuda::getStream(Call &call, void *handle, Result &error) {
  if (isLegacy(handle))
    return getLegacy(call, error);
  Stream *stream = find(getState().streams, handle);
  Context *context = getCurrent();
  error = Success;
  if (!context)
    error = call.refuse(InvalidContext, "no context is current");
  else if (!stream)
    error = call.refuse(InvalidHandle, "no such stream");
  else if (stream->context != context)
    error = call.refuse(InvalidHandle, "the stream is of another context");
  else if (context->error)
    error = context->error;
  return error ? nullptr : stream;
}

Result fake_cuda::enqueue(Call &call, Stream &stream, Work work) {
  if (stream.capture) {
    if (!stream.capture->isValid)
      return call.refuse(CaptureInvalidated, "the capture is no longer valid");
    stream.capture->nodes.push_back(std::move(work));
    return Success;
  }
  if (stream.isLegacy) {
    // "Stream synchronization behavior": after all that is in blocking streams.
    for (const auto &other : getState().streams)
      if (other->context == stream.context && other->isBlocking)
        drain(*other);
    work.run(*stream.context);
    return Success;
  }
  stream.queue.push_back(std::move(work));
  ++stream.numQueued;
  return Success;
}

void fake_cuda::drain(Stream &stream, uint64_t place) {
  while (stream.numDone < place && !stream.queue.empty()) {
    Work work = std::move(stream.queue.front());
    stream.queue.pop_front();
    ++stream.numDone;
    if (!stream.context->error)
      work.run(*stream.context);
  }
}

static thread_local CaptureMode threadMode = Global;

Result fake_cuda::checkUnsafe(Call &call) {
  if (threadMode == Relaxed)
    return Success;
  for (const auto &capture : getState().captures) {
    bool isOwn = pthread_equal(capture->thread, pthread_self());
    bool isConcerned = isOwn ? capture->mode != Relaxed
                             : capture->mode == Global && threadMode == Global;
    if (capture->isActive && isConcerned) {
      capture->isValid = false;
      return call.refuse(CaptureUnsupported,
                         "unsafe while a stream is captured");
    }
  }
  return Success;
}

extern "C" {

//===----------------------------------------------------------------------===//
// "Stream Management"
//===----------------------------------------------------------------------===//

Result cuStreamCreate(Stream **stream, unsigned flags) {
  ENTRY(cuStreamCreate);
  Context *context = getCurrent();
  if (!context)
    return call.refuse(InvalidContext, "no context is current");
  if (flags > 1)
    return call.refuse(InvalidValue, "no such flags");
  if (Result error = checkUnsafe(call))
    return error;
  *stream = makeStream(*context, flags == 0);
  return Success;
}

Result cuStreamDestroy_v2(void *handle) {
  ENTRY(cuStreamDestroy_v2);
  // What is in it is done first.
  Stream *stream = find(getState().streams, handle);
  if (!stream)
    return call.refuse(InvalidHandle, "no such stream");
  drain(*stream);
  stream->isAlive = false;
  return Success;
}

Result cuStreamGetCtx(void *handle, Context **context) {
  ENTRY(cuStreamGetCtx);
  Stream *stream = find(getState().streams, handle);
  *context = isLegacy(handle) ? getCurrent()
             : stream         ? stream->context
                              : nullptr;
  if (*context)
    return Success;
  return isLegacy(handle) ? call.refuse(InvalidContext, "no context is current")
                          : call.refuse(InvalidHandle, "no such stream");
}

Result cuStreamSynchronize(void *handle) {
  ENTRY(cuStreamSynchronize);
  Result error = Success;
  Stream *stream = getStream(call, handle, error);
  if (!stream)
    return error;
  if (stream->capture) {
    invalidate(*stream);
    return call.refuse(CaptureUnsupported, "the stream is captured");
  }
  if (Result error = checkUnsafe(call))
    return error;
  drain(*stream);
  return stream->context->error;
}

Result cuStreamWaitEvent(void *handle, Event *opaque, unsigned /*flags*/) {
  ENTRY(cuStreamWaitEvent);
  Result error = Success;
  Stream *stream = getStream(call, handle, error);
  if (!stream)
    return error;
  Event *event = find(getState().events, opaque);
  if (!event)
    return call.refuse(InvalidHandle, "no such event");
  if (stream->capture && !event->isCaptured) {
    invalidate(*stream);
    return call.refuse(CaptureIsolation,
                       "an event from outside of the capture");
  }
  if (!event->stream || event->isCaptured)
    return Success;
  Stream *other = event->stream;
  uint64_t place = event->place;
  return enqueue(call, *stream,
                 {[=](Context &) { drain(*other, place); }, "wait"});
}

//===----------------------------------------------------------------------===//
// "Event Management"
//===----------------------------------------------------------------------===//

Result cuEventCreate(Event **event, unsigned /*flags*/) {
  ENTRY(cuEventCreate);
  Context *context = getCurrent();
  if (!context)
    return call.refuse(InvalidContext, "no context is current");
  getState().events.push_back(std::make_unique<Event>());
  *event = getState().events.back().get();
  (*event)->context = context;
  return Success;
}

Result cuEventDestroy_v2(Event *opaque) {
  ENTRY(cuEventDestroy_v2);
  Event *event = find(getState().events, opaque);
  if (!event)
    return call.refuse(InvalidHandle, "no such event");
  event->isAlive = false;
  return Success;
}

Result cuEventRecord(Event *opaque, void *handle) {
  ENTRY(cuEventRecord);
  Result error = Success;
  Stream *stream = getStream(call, handle, error);
  if (!stream)
    return error;
  Event *event = find(getState().events, opaque);
  if (!event || event->context != stream->context)
    return call.refuse(InvalidHandle, "no event of this context");
  event->isCaptured = stream->capture;
  event->stream = stream;
  event->place = stream->numQueued;
  return Success;
}

Result cuEventSynchronize(Event *opaque) {
  ENTRY(cuEventSynchronize);
  Event *event = find(getState().events, opaque);
  if (!event)
    return call.refuse(InvalidHandle, "no such event");
  if (event->isCaptured)
    return call.refuse(CapturedEvent, "the event was recorded in a capture");
  if (Result error = checkUnsafe(call))
    return error;
  if (event->stream)
    drain(*event->stream, event->place);
  return event->context->error;
}

//===----------------------------------------------------------------------===//
// Capture ("Stream Management") and "Graph Management"
//===----------------------------------------------------------------------===//

Result cuThreadExchangeStreamCaptureMode(int *mode) {
  ENTRY(cuThreadExchangeStreamCaptureMode);
  if (*mode < Global || *mode > Relaxed)
    return call.refuse(InvalidValue, "no such mode");
  int previous = threadMode;
  threadMode = static_cast<CaptureMode>(*mode);
  *mode = previous;
  return Success;
}

Result cuStreamIsCapturing(void *handle, int *status) {
  ENTRY(cuStreamIsCapturing);
  Result error = Success;
  Stream *stream = getStream(call, handle, error);
  if (!stream)
    return error;
  *status = !stream->capture ? 0 : stream->capture->isValid ? 1 : 2;
  return Success;
}

Result cuStreamBeginCapture_v2(void *handle, int mode) {
  ENTRY(cuStreamBeginCapture_v2);
  Result error = Success;
  Stream *stream = getStream(call, handle, error);
  if (!stream)
    return error;
  if (stream->isLegacy || stream->capture)
    return call.refuse(InvalidValue, "the stream cannot be captured");
  getState().captures.push_back(std::make_unique<Capture>());
  Capture *capture = getState().captures.back().get();
  capture->context = stream->context;
  capture->stream = stream;
  capture->mode = static_cast<CaptureMode>(mode);
  capture->thread = pthread_self();
  stream->capture = capture;
  return Success;
}

static void release(Capture &graph) {
  if (--graph.uses == 0)
    freeBlocks(graph);
}

Result cuStreamEndCapture(void *handle, Capture **graph) {
  ENTRY(cuStreamEndCapture);
  Stream *stream = find(getState().streams, handle);
  if (!stream || !stream->capture)
    return call.refuse(CaptureUnmatched, "the stream is not captured");
  Capture *capture = stream->capture;
  if (capture->mode != Relaxed &&
      !pthread_equal(capture->thread, pthread_self()))
    return call.refuse(CaptureWrongThread, "another thread has begun");
  stream->capture = nullptr;
  capture->isActive = false;
  *graph = capture->isValid ? capture : nullptr;
  if (*graph)
    return Success;
  release(*capture);
  return call.refuse(CaptureInvalidated, "the capture is no longer valid");
}

static Capture *findGraph(const void *handle) {
  for (const auto &capture : getState().captures)
    if (capture.get() == handle && capture->uses > 0 && !capture->isActive)
      return capture.get();
  return nullptr;
}

Result cuGraphInstantiateWithFlags(Executable **executable, Capture *opaque,
                                   unsigned long long /*flags*/) {
  ENTRY(cuGraphInstantiateWithFlags);
  Capture *graph = findGraph(opaque);
  if (!graph)
    return call.refuse(InvalidValue, "no such graph");
  ++graph->uses;
  getState().executables.push_back(std::make_unique<Executable>());
  *executable = getState().executables.back().get();
  (*executable)->graph = graph;
  return Success;
}

Result cuGraphLaunch(Executable *opaque, void *handle) {
  ENTRY(cuGraphLaunch);
  Result error = Success;
  Stream *stream = getStream(call, handle, error);
  if (!stream)
    return error;
  Executable *executable = find(getState().executables, opaque);
  if (!executable)
    return call.refuse(InvalidHandle, "no such executable graph");
  Capture *graph = executable->graph;
  // "Graph Memory Nodes": memory that a graph leaves allocated cannot be
  // allocated again.
  for (const auto &block : graph->blocks)
    if (block->isThere)
      return call.refuse(InvalidValue,
                         "memory of the last launch is not freed");
  for (const Work &node : graph->nodes)
    if (Result error = enqueue(call, *stream, node))
      return error;
  return Success;
}

Result cuGraphExecDestroy(Executable *opaque) {
  ENTRY(cuGraphExecDestroy);
  Executable *executable = find(getState().executables, opaque);
  if (!executable)
    return call.refuse(InvalidHandle, "no such executable graph");
  executable->isAlive = false;
  release(*executable->graph);
  return Success;
}

Result cuGraphDestroy(Capture *opaque) {
  ENTRY(cuGraphDestroy);
  Capture *graph = findGraph(opaque);
  if (!graph)
    return call.refuse(InvalidValue, "no such graph");
  release(*graph);
  return Success;
}

} // extern "C"
