# The headers that programs may include; docs/api.md says what each is for, and tools/check_api.py
# that both lists are the same. Only these and what they include are installed: everything else may
# change from one day to the next.
set(ZEUS_PUBLIC_HEADERS
  zeus/base/result.h
  zeus/base/units.h
  zeus/base/clock.h
  zeus/base/stepped_clock.h
  zeus/base/json.h
  zeus/base/json_fwd.h
  zeus/base/log.h
  zeus/base/quantity_text.h
  zeus/base/random.h
  zeus/base/version.h
  zeus/device/node.h
  zeus/device/gpu.h
  zeus/device/cpu_package.h
  zeus/device/energy_meter.h
  zeus/device/knobs/knob.h
  zeus/device/knobs/guarded_knob.h
  zeus/device/sim/simulated_gpu.h
  zeus/device/sim/gpu_model.h
  zeus/device/sim/workload.h
  zeus/device/sim/load.h
  zeus/device/sim/fault.h
  zeus/monitor/node_monitor.h
  zeus/monitor/energy_monitor.h
  zeus/monitor/measurement.h
  zeus/monitor/timeline.h
  zeus/monitor/own_share.h
  zeus/optimizer/collective.h
  zeus/optimizer/power_limit/power_limit_optimizer.h
  zeus/optimizer/power_limit/selector.h
  zeus/optimizer/power_limit/profile.h
  zeus/optimizer/power_limit/savings.h
  zeus/optimizer/power_limit/slice_meter.h
  zeus/optimizer/power_limit/slice_rule.h
  zeus/optimizer/batch_size/policy.h
  zeus/optimizer/pipeline/planner.h
  zeus/optimizer/pipeline/problem.h
  zeus/optimizer/pipeline/profile.h
  zeus/optimizer/pipeline/profile_csv.h
  zeus/optimizer/pipeline/schedule.h
  zeus/optimizer/pipeline/plan.h
  zeus/optimizer/pipeline/frontier.h
  zeus/training/training_loop.h
  zeus/training/training_summary.h
  zeus/training/callback.h
  zeus/training/global_power_limit_optimizer.h
  zeus/training/pipeline/pipeline_frequency_optimizer.h
  zeus/job/job_service.h
  zeus/job/job_spec.h
  zeus/job/job.h
  zeus/job/savings.h
  zeus/job/local_job_service.h
  zeus/job/memory_repository.h
  zeus/store/open_repository.h
  zeus/plan/plan_service.h
  zeus/client/batch_size_client.h
  zeus/client/remote_job_service.h
  zeus/client/remote_plan_service.h
  zeus/carbon/accounting.h
  zeus/carbon/electricity_maps.h
  zeus/carbon/country_intensity.h
  zeus/carbon/tariff.h
  zeus/carbon/quantities.h
  zeus/session/train.h
  zeus/mpi/mpi_collective.h)

# zeus_headers_with_includes(VARIABLE HEADER ...): the headers and what they include of zeus/.
function(zeus_headers_with_includes variable)
  set(todo ${ARGN})
  set(found "")
  while(todo)
    list(POP_FRONT todo header)
    if(header IN_LIST found)
      continue()
    endif()
    list(APPEND found ${header})
    file(STRINGS ${PROJECT_SOURCE_DIR}/${header} lines REGEX "^#include \"zeus/")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^#include \"([^\"]+)\".*" "\\1" included "${line}")
      list(APPEND todo ${included})
    endforeach()
  endwhile()
  set(${variable} ${found} PARENT_SCOPE)
endfunction()
zeus_headers_with_includes(ZEUS_INSTALLED_HEADERS ${ZEUS_PUBLIC_HEADERS})

# zeus_add_headers(TARGET HEADER ...): those that are installed, and the others.
function(zeus_add_headers target)
  set(public "")
  set(internal "")
  foreach(header IN LISTS ARGN)
    file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/${header})
    if(path IN_LIST ZEUS_INSTALLED_HEADERS)
      list(APPEND public ${CMAKE_CURRENT_SOURCE_DIR}/${header})
      set_property(TARGET ${target} PROPERTY ZEUS_HAS_PUBLIC_HEADERS ON)
    else()
      list(APPEND internal ${CMAKE_CURRENT_SOURCE_DIR}/${header})
    endif()
  endforeach()
  target_sources(${target}
    PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${public}
    PRIVATE ${internal})
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
endfunction()
