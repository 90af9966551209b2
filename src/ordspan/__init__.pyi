from ordspan import bounds as bounds
from ordspan import data as data
from ordspan import distributed as distributed
from ordspan import learners as learners
from ordspan import metrics as metrics
from ordspan import plot as plot
from ordspan import river as river
from ordspan.commands.python import evaluate_files as evaluate_files
from ordspan.commands.python import predict_files as predict_files
from ordspan.commands.python import train_files as train_files
from ordspan.data.coarsening import coarsen as coarsen
from ordspan.estimators import KernelOrdinalPA as KernelOrdinalPA
from ordspan.estimators import MulticlassPA as MulticlassPA
from ordspan.estimators import MulticlassPerceptron as MulticlassPerceptron
from ordspan.estimators import OrdinalPA as OrdinalPA
from ordspan.estimators import OrdinalSVM as OrdinalSVM
from ordspan.estimators import PRank as PRank
from ordspan.estimators.calibrated import CalibratedOrdinal as CalibratedOrdinal
from ordspan.estimators.splitting import StratifiedIntervalKFold as StratifiedIntervalKFold
from ordspan.estimators.steps import latent as latent
from ordspan.estimators.steps import predict_interval as predict_interval
from ordspan.labels.ranks import intervals as intervals
from ordspan.labels.ranks import parse_intervals as parse_intervals
from ordspan.models.file import ModelFileError as ModelFileError
from ordspan.models.file import load as load
from ordspan.models.file import save as save

__version__: str
